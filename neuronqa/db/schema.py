"""Every table there is, in one metadata: what the migrations are held to."""

from __future__ import annotations

from typing import Final

from sqlalchemy import MetaData

from neuronqa.db import cluster_tables, columns, fix_tables, tables, tally_tables

MODULES: Final = (tables, cluster_tables, tally_tables, fix_tables)

metadata: Final[MetaData] = columns.metadata
