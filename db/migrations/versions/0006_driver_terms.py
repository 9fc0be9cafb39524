"""How often a sweep's driver changed, so that one that was replaced can write no more"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Older sweeps have had their drivers."""
    op.add_column("sweep", sa.Column("term", sa.Integer(), nullable=False, server_default="0"))
