-- What a sweep's attempts cost, by kind of attempt and variant.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    sweep.started AS started,
    attempt.kind AS attempt_kind,
    "case".variant AS variant,
    count(*) AS attempts,
    sum(attempt.cpu_s) AS cpu_s,
    sum(attempt.wall_s) AS wall_s,
    max(attempt.peak_rss) AS peak_rss
FROM attempt
JOIN sweep ON sweep.id = attempt.sweep_id
JOIN "case" ON "case".id = attempt.case_id
GROUP BY sweep.id, sweep.name, sweep.started, attempt.kind, "case".variant
