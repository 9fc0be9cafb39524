"""First schema"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "blob",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blob")),
        sa.UniqueConstraint("sha256", name=op.f("uq_blob_sha256")),
    )
    op.create_table(
        "build",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hash", sa.String(length=32), nullable=False),
        sa.Column("vector", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_build")),
        sa.UniqueConstraint("hash", name=op.f("uq_build_hash")),
    )
    op.create_table(
        "plan",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("catalog", sa.Text(), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("catalog_sha256", sa.String(length=64), nullable=False),
        sa.Column("registered", sa.Integer(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plan")),
        sa.UniqueConstraint("key", name=op.f("uq_plan_key")),
    )
    op.create_table(
        "workload",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hash", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("class_name", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workload")),
        sa.UniqueConstraint("hash", name=op.f("uq_workload_hash")),
    )
    op.create_table(
        "case",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hash", sa.String(length=32), nullable=False),
        sa.Column("workload_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.String(length=64), nullable=False),
        sa.Column("variant", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_case_workload_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_case")),
        sa.UniqueConstraint("hash", name=op.f("uq_case_hash")),
    )
    op.create_index(op.f("ix_case_workload_id"), "case", ["workload_id"], unique=False)
    op.create_table(
        "plan_group",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("plan_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("listing", sa.Text(), nullable=False),
        sa.Column("kernel_key", sa.String(length=32), nullable=False),
        sa.Column("graph_key", sa.String(length=32), nullable=False),
        sa.Column("workload_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("model_type", sa.Text(), nullable=False),
        sa.Column("class_name", sa.Text(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name=op.f("fk_plan_group_plan_id")),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_plan_group_workload_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plan_group")),
    )
    op.create_index(op.f("ix_plan_group_plan_id"), "plan_group", ["plan_id"], unique=False)
    op.create_table(
        "sweep",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("plan_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.String(length=64), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("policy_name", sa.Text(), nullable=False),
        sa.Column("policy_sha256", sa.String(length=32), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float(), nullable=True),
        sa.Column("wall_s", sa.Float(), nullable=False),
        sa.Column("cores", sa.Integer(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_sweep_build_id")),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name=op.f("fk_sweep_plan_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
        sa.UniqueConstraint("name", name=op.f("uq_sweep_name")),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("case_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ticket", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("probe_of", sa.String(length=32), nullable=True),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("wall_s", sa.Float(), nullable=False),
        sa.Column("cpu_s", sa.Float(), nullable=False),
        sa.Column("peak_rss", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.String(length=64), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=False),
        sa.Column("ops_complete", sa.Boolean(), nullable=False),
        sa.Column("blob_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name=op.f("fk_attempt_blob_id")),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_attempt_case_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_attempt_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("ticket", name=op.f("uq_attempt_ticket")),
    )
    op.create_index("ix_attempt_case_id", "attempt", ["case_id"], unique=False)
    op.create_index("ix_attempt_sweep_id_case_id", "attempt", ["sweep_id", "case_id"], unique=False)
    op.create_table(
        "entry",
        sa.Column("plan_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.Column("library", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("config", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["group_id"], ["plan_group.id"], name=op.f("fk_entry_group_id")),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name=op.f("fk_entry_plan_id")),
        sa.PrimaryKeyConstraint("plan_id", "rank", name=op.f("pk_entry")),
    )
    op.create_index(op.f("ix_entry_group_id"), "entry", ["group_id"], unique=False)
    op.create_index("ix_entry_plan_id_name", "entry", ["plan_id", "name"], unique=False)
    op.create_table(
        "standing",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("evidence", sa.String(length=10), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("missed", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["plan_group.id"], name=op.f("fk_standing_group_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_standing_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "group_id", name=op.f("pk_standing")),
    )
    op.create_index("ix_standing_sweep_id_label", "standing", ["sweep_id", "label"], unique=False)
    op.create_table(
        "sweep_case",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("case_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_sweep_case_case_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_case_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "case_id", name=op.f("pk_sweep_case")),
    )
    op.create_table(
        "blocker",
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_blocker_attempt_id")),
        sa.PrimaryKeyConstraint("attempt_id", "check", "position", name=op.f("pk_blocker")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_blocker_kind_detail", "blocker", ["kind", "detail"], unique=False)
    op.create_table(
        "control",
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("guards", sa.String(length=12), nullable=False),
        sa.Column("expected", sa.String(length=80), nullable=False),
        sa.Column("judged", sa.String(length=80), nullable=False),
        sa.Column("caught", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_control_attempt_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_control_sweep_id")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_control")),
    )
    op.create_index(op.f("ix_control_sweep_id"), "control", ["sweep_id"], unique=False)
    op.create_table(
        "result",
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("measure", sa.Float(), nullable=True),
        sa.Column("blob_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_result_attempt_id")),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name=op.f("fk_result_blob_id")),
        sa.PrimaryKeyConstraint("attempt_id", "check", name=op.f("pk_result")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_result_kind", "result", ["kind"], unique=False)
