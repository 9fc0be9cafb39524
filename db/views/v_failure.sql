-- Failing outcomes by check, architecture and variant, of what counts and of probes (attempt_kind).
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    failure_tally."check" AS failing_check,
    failure_tally.kind AS kind,
    failure_tally.variant AS variant,
    failure_tally.family AS architecture,
    failure_tally.attempt_kind AS attempt_kind,
    failure_tally.failures AS failures
FROM failure_tally
JOIN sweep ON sweep.id = failure_tally.sweep_id
