"""What a sweep leaves for the pages when it ends: sums over its rows, and what failing checks said in words."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Integer, SmallInteger, String, Table

from neuronqa.db.columns import Id, SafeText, metadata

rung_tally = Table(
    "rung_tally",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("lane", String(64), primary_key=True),
    Column("rung", String(12), primary_key=True),
    Column("evidence", String(10), primary_key=True),
    Column("standing", String(8), primary_key=True),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
)
"""What the ladder counts, added up once when a sweep ends. Lane: a variant the policy asks for, or empty for all."""

state_tally = Table(
    "state_tally",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("family", SafeText, primary_key=True),
    Column("label", String(64), primary_key=True),
    Column("evidence", String(10), primary_key=True),
    Column("missed", String(12), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
)
"""Entries by architecture and state."""

failure_tally = Table(
    "failure_tally",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("check", String(12), primary_key=True),
    Column("kind", String(40), primary_key=True),
    Column("variant", String(64), primary_key=True),
    Column("family", SafeText, primary_key=True),
    Column("attempt_kind", String(8), primary_key=True),
    Column("failures", Integer, nullable=False),
)
"""Failing outcomes by what they say and of whom."""

op_tally = Table(
    "op_tally",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("op", SafeText, primary_key=True),
    Column("dtype", String(16), primary_key=True),
    Column("mechanism", SmallInteger, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("nbytes", BigInteger, nullable=False),
    Column("ns", BigInteger, nullable=False),
    Column("workloads", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
)
"""Operators as a sweep's counting attempts used them. Mechanism: 0 native, else how it fell to the CPU (OpUse)."""

op_need = Table(
    "op_need",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("op", SafeText, primary_key=True),
    Column("workload_id", ForeignKey("workload.id"), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
)
"""Workloads that need an operator the device did not run itself, and the entries that stand by them."""

op_sample = Table(
    "op_sample",
    metadata,
    Column("sweep_id", ForeignKey("sweep.id"), primary_key=True),
    Column("op", SafeText, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("dtype", String(16), nullable=False),
    Column("phase", String(12), nullable=False),
    Column("direction", String(12), nullable=False),
    Column("shapes", JSON, nullable=False),
    Column("strides", JSON, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("workloads", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("attempt_id", ForeignKey("attempt.id"), nullable=False),
)
"""The forms in which such an operator is needed, those first that most entries need."""

message = Table(
    "message",
    metadata,
    Column("id", Id, primary_key=True),
    Column("attempt_id", ForeignKey("attempt.id"), nullable=False, index=True),
    Column("check", String(12), nullable=False),
    Column("text", SafeText, nullable=False),
)
"""What a failing check says in words, for the full-text index the migration makes over it."""
