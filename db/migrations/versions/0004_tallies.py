"""What the pages count, added up when a sweep ends; and a full-text index over what failing checks say"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Additions alone: older rows stay as they are."""
    _ladder()
    _operators()
    _messages()


def _key() -> sa.types.TypeEngine:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _of_sweep(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f(f"fk_{table}_sweep_id"))


def _weights() -> tuple[sa.Column, sa.Column]:
    return (
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
    )


def _ladder() -> None:
    op.create_table(
        "rung_tally",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("lane", sa.String(length=64), nullable=False),
        sa.Column("rung", sa.String(length=12), nullable=False),
        sa.Column("evidence", sa.String(length=10), nullable=False),
        sa.Column("standing", sa.String(length=8), nullable=False),
        *_weights(),
        _of_sweep("rung_tally"),
        sa.PrimaryKeyConstraint("sweep_id", "lane", "rung", "evidence", "standing", name=op.f("pk_rung_tally")),
    )
    op.create_table(
        "state_tally",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("evidence", sa.String(length=10), nullable=False),
        sa.Column("missed", sa.String(length=12), nullable=False),
        *_weights(),
        _of_sweep("state_tally"),
        sa.PrimaryKeyConstraint("sweep_id", "family", "label", "evidence", name=op.f("pk_state_tally")),
    )
    op.create_table(
        "failure_tally",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("variant", sa.String(length=64), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("attempt_kind", sa.String(length=8), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        _of_sweep("failure_tally"),
        sa.PrimaryKeyConstraint(
            "sweep_id", "check", "kind", "variant", "family", "attempt_kind", name=op.f("pk_failure_tally")
        ),
    )


def _operators() -> None:
    op.create_table(
        "op_tally",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("mechanism", sa.SmallInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("nbytes", sa.BigInteger(), nullable=False),
        sa.Column("ns", sa.BigInteger(), nullable=False),
        sa.Column("workloads", sa.Integer(), nullable=False),
        *_weights(),
        _of_sweep("op_tally"),
        sa.PrimaryKeyConstraint("sweep_id", "op", "dtype", "mechanism", name=op.f("pk_op_tally")),
    )
    op.create_table(
        "op_need",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("workload_id", _key(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        *_weights(),
        _of_sweep("op_need"),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_op_need_workload_id")),
        sa.PrimaryKeyConstraint("sweep_id", "op", "workload_id", name=op.f("pk_op_need")),
    )
    op.create_table(
        "op_sample",
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.String(length=12), nullable=False),
        sa.Column("direction", sa.String(length=12), nullable=False),
        sa.Column("shapes", sa.JSON(), nullable=False),
        sa.Column("strides", sa.JSON(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("workloads", sa.Integer(), nullable=False),
        *_weights(),
        sa.Column("attempt_id", _key(), nullable=False),
        _of_sweep("op_sample"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_op_sample_attempt_id")),
        sa.PrimaryKeyConstraint("sweep_id", "op", "position", name=op.f("pk_op_sample")),
    )


def _messages() -> None:
    op.create_table(
        "message",
        sa.Column("id", _key(), nullable=False),
        sa.Column("attempt_id", _key(), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_message_attempt_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message")),
    )
    op.create_index(op.f("ix_message_attempt_id"), "message", ["attempt_id"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE message_words USING fts5(text, content='message', content_rowid='id')")
        op.execute(
            "CREATE TRIGGER message_words_added AFTER INSERT ON message BEGIN"
            " INSERT INTO message_words(rowid, text) VALUES (new.id, new.text); END"
        )
        op.execute(
            "CREATE TRIGGER message_words_removed AFTER DELETE ON message BEGIN"
            " INSERT INTO message_words(message_words, rowid, text) VALUES ('delete', old.id, old.text); END"
        )
    else:
        op.execute("CREATE INDEX ix_message_words ON message USING gin (to_tsvector('simple', text))")
