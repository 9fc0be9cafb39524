-- One row a sweep, architecture and rung it misses (empty: green). What nothing was run for is `not run`.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    state_tally.family AS architecture,
    CASE WHEN state_tally.evidence = 'none' AND state_tally.missed NOT IN ('', 'eligible')
        THEN 'not run' ELSE state_tally.missed END AS missed,
    sum(state_tally.entries) AS entries,
    sum(state_tally.downloads) AS downloads
FROM state_tally
JOIN sweep ON sweep.id = state_tally.sweep_id
GROUP BY 1, 2, 3, 4
