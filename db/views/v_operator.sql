-- Operators as a sweep used them. Mechanism: 0 native, else how the operator fell to the CPU.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    op_tally.op AS op,
    op_tally.dtype AS dtype,
    op_tally.mechanism AS mechanism,
    op_tally.calls AS calls,
    op_tally.nbytes AS nbytes,
    op_tally.ns AS ns,
    op_tally.workloads AS workloads,
    op_tally.entries AS entries
FROM op_tally
JOIN sweep ON sweep.id = op_tally.sweep_id
