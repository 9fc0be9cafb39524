"""The tables of triage: clusters, their journal, and what each does to a sweep."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
)

from neuronqa.db.columns import Id, SafeText, metadata

cluster = Table(
    "cluster",
    metadata,
    Column("id", Id, primary_key=True),
    Column("lane", SafeText, nullable=False),
    Column("key", String(24), nullable=False),
    Column("key_version", String(8), nullable=False),
    Column("check", String(12), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Column("rung", String(12), nullable=False),
    Column("at_fault", String(8), nullable=False),
    Column("state", String(12), nullable=False),
    Column("version", Integer, nullable=False),
    Column("assignee", SafeText, nullable=False),
    Column("merged_into", ForeignKey("cluster.id"), nullable=True),
    Column("born_sweep_id", ForeignKey("sweep.id"), nullable=False),
    Column("seen_sweep_id", ForeignKey("sweep.id"), nullable=False),
    Column("fixed_build_id", ForeignKey("build.id"), nullable=True),
    Index("ix_cluster_lane_key", "lane", "key"),
    Index("ix_cluster_state", "state"),
)
"""One root cause on one lane (device and profile), under one id for life; `version` counts its journal."""

cluster_rule = Table(
    "cluster_rule",
    metadata,
    Column("id", Id, primary_key=True),
    Column("lane", SafeText, nullable=False),
    Column("key", String(24), nullable=False),
    Column("part", String(16), nullable=False),
    Column("value", SafeText, nullable=False),
    Column("cluster_id", ForeignKey("cluster.id"), nullable=False, index=True),
    UniqueConstraint("lane", "key", "part", "value"),
)
"""Which cluster holds which key. A rule with a part (a family, a dtype, ...) holds the failures that have this value
of it: that is what a split teaches. Merges and moves point rules elsewhere."""

cause = Table(
    "cause",
    metadata,
    Column("key", String(24), primary_key=True),
    Column("check", String(12), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Column("parts", JSON, nullable=False),
)
"""What made a key: every part with its value, whether it counts, and why."""

cluster_event = Table(
    "cluster_event",
    metadata,
    Column("cluster_id", ForeignKey("cluster.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("actor", SafeText, nullable=False),
    Column("action", String(12), nullable=False),
    Column("before", String(12), nullable=True),
    Column("after", String(12), nullable=False),
    Column("sweep_id", ForeignKey("sweep.id"), nullable=True),
    Column("build_id", ForeignKey("build.id"), nullable=True),
    Column("key_version", String(8), nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("evidence", JSON, nullable=False),
)
"""The journal: one row a change, written in the transaction that makes the change."""

waiver = Table(
    "waiver",
    metadata,
    Column("id", Id, primary_key=True),
    Column("cluster_id", ForeignKey("cluster.id"), nullable=False, index=True),
    Column("owner", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("made", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("revoked", Float, nullable=True),
)
"""Who answers for a failure that is put up with, why, and until when. What is waived still counts as failing."""

triage = Table(
    "triage",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("lane", SafeText, nullable=False),
    Column("key_version", String(8), nullable=False),
    Column("made", Float, nullable=False),
    Column("clusters", Integer, nullable=False),
    Column("grade", JSON, nullable=False),
    Column("unlock", JSON, nullable=False),
    Column("report", JSON, nullable=True),
)
"""A sweep that has been triaged: how well its controls were told apart, what fixes would unlock, its report."""

membership = Table(
    "membership",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("cluster_id", ForeignKey("cluster.id"), primary_key=True),
    Column("case_id", ForeignKey("case.id"), primary_key=True),
    Column("check", String(12), primary_key=True),
    Column("key", String(24), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Column("symptom", Boolean, nullable=False),
    Column("attempt_id", ForeignKey("attempt.id"), nullable=False),
    Column("attempts", Integer, nullable=False),
    Index("ix_membership_sweep_id_case_id", "sweep_id", "case_id"),
    sqlite_with_rowid=False,
)
"""Which cases of a sweep fail by which cluster. `symptom`: it fails this check because of what failed before it."""

cluster_count = Table(
    "cluster_count",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("cluster_id", ForeignKey("cluster.id"), primary_key=True),
    Column("state", String(12), nullable=False),
    Column("workloads", Integer, nullable=False),
    Column("cases", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("attempt_id", ForeignKey("attempt.id"), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("sole_entries", Integer, nullable=False),
    Column("sole_downloads", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("unlocked_entries", Integer, nullable=False),
    Column("unlocked_downloads", BigInteger, nullable=False),
    Index("ix_cluster_count_cluster_id_sweep_id", "cluster_id", "sweep_id"),
    Index("ix_cluster_count_sweep_id_place", "sweep_id", "place"),
    Index("ix_cluster_count_sweep_id_entries", "sweep_id", "entries"),
    sqlite_with_rowid=False,
)
"""What each cluster does to a sweep. `place`: its turn in the order of fixes; `unlocked_*`: entries that are green once
it and all before it are fixed. `attempt_id` is an example."""

group_block = Table(
    "group_block",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("group_id", ForeignKey("plan_group.id"), primary_key=True),
    Column("cluster_id", ForeignKey("cluster.id"), primary_key=True),
    Index("ix_group_block_cluster_id_sweep_id", "cluster_id", "sweep_id"),
    sqlite_with_rowid=False,
)
"""Every cluster that stands between a group of entries and green."""

stands_by = Table(
    "stands_by",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("group_id", ForeignKey("plan_group.id"), primary_key=True),
    Column("workload_id", ForeignKey("workload.id"), nullable=False),
    Column("complete", Boolean, nullable=False),
    sqlite_with_rowid=False,
)
"""Whose findings decide a group, and whether its list of blockers is complete. Groups nothing ran for are absent."""
