"""The tables as SQLAlchemy sees them. The schema itself is made by the migrations alone; a test holds the two equal.

Rows about results are insert-only. Long texts (evidence, stacks, operator lists) live in content-addressed blobs.
"""

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
    LargeBinary,
    SmallInteger,
    String,
    Table,
)

from neuronqa.db.columns import Id, SafeText, metadata

workload = Table(
    "workload",
    metadata,
    Column("id", Id, primary_key=True),
    Column("hash", String(32), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("family", SafeText, nullable=False),
    Column("class_name", SafeText, nullable=False),
    Column("spec", JSON, nullable=False),
)

plan = Table(
    "plan",
    metadata,
    Column("id", Id, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("catalog", SafeText, nullable=False),
    Column("source", String(16), nullable=False),
    Column("catalog_sha256", String(64), nullable=False),
    Column("registered", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("versions", JSON, nullable=False),
)

plan_group = Table(
    "plan_group",
    metadata,
    Column("id", Id, primary_key=True),
    Column("plan_id", ForeignKey("plan.id"), nullable=False, index=True),
    Column("listing", SafeText, nullable=False),
    Column("kernel_key", String(32), nullable=False),
    Column("graph_key", String(32), nullable=False),
    Column("workload_id", ForeignKey("workload.id"), nullable=True),
    Column("model_type", SafeText, nullable=False),
    Column("class_name", SafeText, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Index("ix_plan_group_plan_id_kernel_key", "plan_id", "kernel_key"),
)
"""Entries that share listing outcome, kernel key and workload share every verdict: they are one group."""

entry = Table(
    "entry",
    metadata,
    Column("plan_id", ForeignKey("plan.id"), primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("group_id", ForeignKey("plan_group.id"), nullable=False, index=True),
    Column("name", SafeText, nullable=False),
    Column("revision", SafeText, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("library", SafeText, nullable=False),
    Column("task", SafeText, nullable=False),
    Column("config", String(64), nullable=True),
    Index("ix_entry_plan_id_name", "plan_id", "name"),
)

case = Table(
    "case",
    metadata,
    Column("id", Id, primary_key=True),
    Column("hash", String(32), nullable=False, unique=True),
    Column("workload_id", ForeignKey("workload.id"), nullable=False, index=True),
    Column("device", String(64), nullable=False),
    Column("variant", String(64), nullable=False),
)

build = Table(
    "build",
    metadata,
    Column("id", Id, primary_key=True),
    Column("hash", String(32), nullable=False, unique=True),
    Column("vector", JSON, nullable=False),
)

sweep = Table(
    "sweep",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("plan_id", ForeignKey("plan.id"), nullable=False),
    Column("build_id", ForeignKey("build.id"), nullable=False),
    Column("device", String(64), nullable=False),
    Column("profile", SafeText, nullable=False),
    Column("policy", JSON, nullable=False),
    Column("policy_name", SafeText, nullable=False),
    Column("policy_sha256", String(32), nullable=False),
    Column("options", JSON, nullable=False),
    Column("terms", String(32), nullable=True),
    Column("seed", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("started", Float, nullable=False),
    Column("finished", Float, nullable=True),
    Column("wall_s", Float, nullable=False),
    Column("cores", Integer, nullable=False),
    Column("summary", JSON, nullable=True),
    Column("term", Integer, nullable=False, server_default="0"),
)
"""`term` is raised by every driver that takes the sweep up; whoever holds an older one may not write any more."""

sweep_case = Table(
    "sweep_case",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("case_id", ForeignKey("case.id"), primary_key=True),
    Column("position", Integer, nullable=False),
    Index("ix_sweep_case_sweep_id_position", "sweep_id", "position"),
)
"""What a sweep means to execute, in order. What it has executed is told by the attempts; resuming is an anti-join."""

blob = Table(
    "blob",
    metadata,
    Column("id", Id, primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

attempt = Table(
    "attempt",
    metadata,
    Column("id", Id, primary_key=True),
    Column("sweep_id", ForeignKey("sweep.id"), nullable=False),
    Column("case_id", ForeignKey("case.id"), nullable=False),
    Column("ticket", String(40), nullable=False, unique=True),
    Column("kind", String(8), nullable=False),
    Column("probe_of", String(32), nullable=True),
    Column("started", Float, nullable=False),
    Column("wall_s", Float, nullable=False),
    Column("cpu_s", Float, nullable=False),
    Column("peak_rss", BigInteger, nullable=False),
    Column("node", String(64), nullable=False),
    Column("worker", String(64), nullable=False),
    Column("ops_complete", Boolean, nullable=False),
    Column("blob_id", ForeignKey("blob.id"), nullable=True),
    Index("ix_attempt_sweep_id_case_id", "sweep_id", "case_id"),
    Index("ix_attempt_case_id", "case_id"),
)

carried = Table(
    "carried",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("source_id", ForeignKey("attempt.id"), primary_key=True),
    Column("case_id", ForeignKey("case.id"), nullable=False),
    Column("attempt_id", ForeignKey("attempt.id"), nullable=True, unique=True),
)
"""Attempts of earlier sweeps whose verdict a sweep takes over, and the rows it has of them as its own.

Where there is none (`attempt_id` is null), the case was drawn to be executed anyway, to be compared with its source.
"""

result = Table(
    "result",
    metadata,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("check", String(12), primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Column("measure", Float, nullable=True),
    Column("blob_id", ForeignKey("blob.id"), nullable=True),
    Index("ix_result_kind", "kind"),
    sqlite_with_rowid=False,
)

blocker = Table(
    "blocker",
    metadata,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("check", String(12), primary_key=True),
    Column("position", SmallInteger, primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Index("ix_blocker_kind_detail", "kind", "detail"),
    sqlite_with_rowid=False,
)
"""Every failing outcome of a check, the first being the result's own: a check that names three operators has three."""

control = Table(
    "control",
    metadata,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("sweep_id", ForeignKey("sweep.id"), nullable=False, index=True),
    Column("name", String(64), nullable=False),
    Column("guards", String(12), nullable=False),
    Column("expected", String(80), nullable=False),
    Column("judged", String(80), nullable=False),
    Column("caught", Boolean, nullable=False),
    Column("fault", SafeText, nullable=True),
)
"""The key of the controls: only the driver holds it while a sweep runs; the rows are written with the verdicts."""

standing = Table(
    "standing",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("group_id", ForeignKey("plan_group.id"), primary_key=True),
    Column("evidence", String(10), nullable=False),
    Column("label", String(64), nullable=False),
    Column("missed", String(12), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("detail", SafeText, nullable=False),
    Index("ix_standing_sweep_id_label", "sweep_id", "label"),
)
"""Where each group stands when a sweep ends: the entry-state function's answer, kept so that SQL can add it up."""
