"""The tables of the fix queue: items, leases, submissions, and their journal."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Float, ForeignKey, Index, Integer, String, Table

from neuronqa.db.columns import Id, SafeText, metadata

fix_item = Table(
    "fix_item",
    metadata,
    Column("id", Id, primary_key=True),
    Column("cluster_id", ForeignKey("cluster.id"), nullable=False, index=True),
    Column("live_cluster_id", ForeignKey("cluster.id"), nullable=True, unique=True),
    Column("sweep_id", ForeignKey("sweep.id"), nullable=False),
    Column("lane", SafeText, nullable=False),
    Column("operator", SafeText, nullable=False),
    Column("title", SafeText, nullable=False),
    Column("state", String(12), nullable=False),
    Column("version", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("rejections", Integer, nullable=False),
    Column("not_before", Float, nullable=False),
    Column("made", Float, nullable=False),
    Column("landed_build", String(32), nullable=True),
    Index("ix_fix_item_state", "state", "place"),
)
"""A cluster that is offered. `live_cluster_id` is the cluster as long as the item lives: so each has one live item."""

fix_lease = Table(
    "fix_lease",
    metadata,
    Column("id", Id, primary_key=True),
    Column("item_id", ForeignKey("fix_item.id"), nullable=False, index=True),
    Column("live_item_id", ForeignKey("fix_item.id"), nullable=True, unique=True),
    Column("token_sha256", String(64), nullable=False, unique=True),
    Column("agent", SafeText, nullable=False),
    Column("granted", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("ended", Float, nullable=True),
    Column("ending", String(12), nullable=True),
)
"""An attempt of one agent at one item. Tokens are kept as hashes alone."""

fix_submission = Table(
    "fix_submission",
    metadata,
    Column("id", Id, primary_key=True),
    Column("item_id", ForeignKey("fix_item.id"), nullable=False, index=True),
    Column("lease_id", ForeignKey("fix_lease.id"), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("folder", SafeText, nullable=False),
    Column("made", Float, nullable=False),
    Column("seed", String(64), nullable=True),
    Column("judged", Float, nullable=True),
    Column("judgement", String(12), nullable=True),
    Column("stage", String(24), nullable=True),
    Column("reason", String(24), nullable=True),
    Column("note", SafeText, nullable=True),
    Column("measured", JSON, nullable=True),
)
"""What was handed in. `seed` decides the hidden cases, drawn when verification begins; `note` is for operators."""

fix_event = Table(
    "fix_event",
    metadata,
    Column("item_id", ForeignKey("fix_item.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("actor", SafeText, nullable=False),
    Column("before", String(12), nullable=True),
    Column("after", String(12), nullable=False),
    Column("why", SafeText, nullable=False),
    Column("evidence", JSON, nullable=False),
)
"""Append-only: one row for each change of an item, numbered by its version."""
