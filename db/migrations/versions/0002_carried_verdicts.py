"""Verdicts that a sweep takes over from an earlier one"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("sweep", sa.Column("terms", sa.String(length=32), nullable=True))
    op.create_table(
        "carried",
        sa.Column("sweep_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("case_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_carried_attempt_id")),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_carried_case_id")),
        sa.ForeignKeyConstraint(["source_id"], ["attempt.id"], name=op.f("fk_carried_source_id")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_carried_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "source_id", name=op.f("pk_carried")),
        sa.UniqueConstraint("attempt_id", name=op.f("uq_carried_attempt_id")),
    )
