"""Root causes and what becomes of them"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "cause",
        sa.Column("key", sa.String(length=24), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_cause")),
    )
    op.create_table(
        "cluster",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("key", sa.String(length=24), nullable=False),
        sa.Column("key_version", sa.String(length=8), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("rung", sa.String(length=12), nullable=False),
        sa.Column("at_fault", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("assignee", sa.Text(), nullable=False),
        sa.Column("merged_into", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("born_sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("seen_sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("fixed_build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["born_sweep_id"], ["sweep.id"], name=op.f("fk_cluster_born_sweep_id")),
        sa.ForeignKeyConstraint(["fixed_build_id"], ["build.id"], name=op.f("fk_cluster_fixed_build_id")),
        sa.ForeignKeyConstraint(["merged_into"], ["cluster.id"], name=op.f("fk_cluster_merged_into")),
        sa.ForeignKeyConstraint(["seen_sweep_id"], ["sweep.id"], name=op.f("fk_cluster_seen_sweep_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster")),
    )
    op.create_index("ix_cluster_lane_key", "cluster", ["lane", "key"], unique=False)
    op.create_index("ix_cluster_state", "cluster", ["state"], unique=False)
    op.create_table(
        "stands_by",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workload_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["plan_group.id"], name=op.f("fk_stands_by_group_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_stands_by_sweep_id")),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_stands_by_workload_id")),
        sa.PrimaryKeyConstraint("sweep_id", "group_id", name=op.f("pk_stands_by")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "triage",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("key_version", sa.String(length=8), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.Column("clusters", sa.Integer(), nullable=False),
        sa.Column("grade", sa.JSON(), nullable=False),
        sa.Column("unlock", sa.JSON(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_triage_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", name=op.f("pk_triage")),
    )
    op.create_table(
        "cluster_count",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("workloads", sa.Integer(), nullable=False),
        sa.Column("cases", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.Column("sole_entries", sa.Integer(), nullable=False),
        sa.Column("sole_downloads", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("unlocked_entries", sa.Integer(), nullable=False),
        sa.Column("unlocked_downloads", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_cluster_count_attempt_id")),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_cluster_count_cluster_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_cluster_count_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "cluster_id", name=op.f("pk_cluster_count")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cluster_count_cluster_id_sweep_id", "cluster_count", ["cluster_id", "sweep_id"], unique=False)
    op.create_index("ix_cluster_count_sweep_id_entries", "cluster_count", ["sweep_id", "entries"], unique=False)
    op.create_index("ix_cluster_count_sweep_id_place", "cluster_count", ["sweep_id", "place"], unique=False)
    op.create_table(
        "cluster_event",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=12), nullable=False),
        sa.Column("before", sa.String(length=12), nullable=True),
        sa.Column("after", sa.String(length=12), nullable=False),
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("key_version", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_cluster_event_build_id")),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_cluster_event_cluster_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_cluster_event_sweep_id")),
        sa.PrimaryKeyConstraint("cluster_id", "version", name=op.f("pk_cluster_event")),
    )
    op.create_table(
        "cluster_rule",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("key", sa.String(length=24), nullable=False),
        sa.Column("part", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_cluster_rule_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster_rule")),
        sa.UniqueConstraint("lane", "key", "part", "value", name=op.f("uq_cluster_rule_lane_key_part_value")),
    )
    op.create_index(op.f("ix_cluster_rule_cluster_id"), "cluster_rule", ["cluster_id"], unique=False)
    op.create_table(
        "group_block",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_group_block_cluster_id")),
        sa.ForeignKeyConstraint(["group_id"], ["plan_group.id"], name=op.f("fk_group_block_group_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_group_block_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "group_id", "cluster_id", name=op.f("pk_group_block")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_group_block_cluster_id_sweep_id", "group_block", ["cluster_id", "sweep_id"], unique=False)
    op.create_table(
        "membership",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("case_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check", sa.String(length=12), nullable=False),
        sa.Column("key", sa.String(length=24), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("symptom", sa.Boolean(), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_membership_attempt_id")),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_membership_case_id")),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_membership_cluster_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_membership_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "cluster_id", "case_id", "check", name=op.f("pk_membership")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_membership_sweep_id_case_id", "membership", ["sweep_id", "case_id"], unique=False)
    op.create_table(
        "waiver",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_waiver_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_waiver")),
    )
    op.create_index(op.f("ix_waiver_cluster_id"), "waiver", ["cluster_id"], unique=False)
    op.add_column("control", sa.Column("fault", sa.Text(), nullable=True))
    op.create_index("ix_plan_group_plan_id_kernel_key", "plan_group", ["plan_id", "kernel_key"], unique=False)
