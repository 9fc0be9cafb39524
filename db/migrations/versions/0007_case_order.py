"""Planned cases are read page by page in their order, which sorted all of them for every page"""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_index("ix_sweep_case_sweep_id_position", "sweep_case", ["sweep_id", "position"])
