"""The fix queue: items, leases, submissions, journal"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """New tables alone."""
    _items()
    _leases()
    _submissions()
    _events()


def _key() -> sa.types.TypeEngine:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _items() -> None:
    op.create_table(
        "fix_item",
        sa.Column("id", _key(), nullable=False),
        sa.Column("cluster_id", _key(), nullable=False),
        sa.Column("live_cluster_id", _key(), nullable=True),
        sa.Column("sweep_id", _key(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("operator", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.Column("rejections", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Float(), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.Column("landed_build", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_fix_item_cluster_id")),
        sa.ForeignKeyConstraint(["live_cluster_id"], ["cluster.id"], name=op.f("fk_fix_item_live_cluster_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_fix_item_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fix_item")),
        sa.UniqueConstraint("live_cluster_id", name=op.f("uq_fix_item_live_cluster_id")),
    )
    op.create_index(op.f("ix_fix_item_cluster_id"), "fix_item", ["cluster_id"], unique=False)
    op.create_index("ix_fix_item_state", "fix_item", ["state", "place"], unique=False)


def _leases() -> None:
    op.create_table(
        "fix_lease",
        sa.Column("id", _key(), nullable=False),
        sa.Column("item_id", _key(), nullable=False),
        sa.Column("live_item_id", _key(), nullable=True),
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("granted", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("ending", sa.String(length=12), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["fix_item.id"], name=op.f("fk_fix_lease_item_id")),
        sa.ForeignKeyConstraint(["live_item_id"], ["fix_item.id"], name=op.f("fk_fix_lease_live_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fix_lease")),
        sa.UniqueConstraint("live_item_id", name=op.f("uq_fix_lease_live_item_id")),
        sa.UniqueConstraint("token_sha256", name=op.f("uq_fix_lease_token_sha256")),
    )
    op.create_index(op.f("ix_fix_lease_item_id"), "fix_lease", ["item_id"], unique=False)


def _submissions() -> None:
    op.create_table(
        "fix_submission",
        sa.Column("id", _key(), nullable=False),
        sa.Column("item_id", _key(), nullable=False),
        sa.Column("lease_id", _key(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.Column("seed", sa.String(length=64), nullable=True),
        sa.Column("judged", sa.Float(), nullable=True),
        sa.Column("judgement", sa.String(length=12), nullable=True),
        sa.Column("stage", sa.String(length=24), nullable=True),
        sa.Column("reason", sa.String(length=24), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("measured", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["fix_item.id"], name=op.f("fk_fix_submission_item_id")),
        sa.ForeignKeyConstraint(["lease_id"], ["fix_lease.id"], name=op.f("fk_fix_submission_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fix_submission")),
    )
    op.create_index(op.f("ix_fix_submission_item_id"), "fix_submission", ["item_id"], unique=False)


def _events() -> None:
    op.create_table(
        "fix_event",
        sa.Column("item_id", _key(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("before", sa.String(length=12), nullable=True),
        sa.Column("after", sa.String(length=12), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["fix_item.id"], name=op.f("fk_fix_event_item_id")),
        sa.PrimaryKeyConstraint("item_id", "version", name=op.f("pk_fix_event")),
    )
