-- One row a sweep, lane and rung: how many of everything registered stand on it, and the range of the rate. `low` counts
-- what was shown (inherited verdicts discounted by the audit's bound), `high` adds what was not run; both are NULL where
-- a control withheld the rate. The lane of the whole policy is the empty one.
SELECT
    counted.*,
    CASE WHEN withheld = 0 AND registered > 0
        THEN (executed + inherited * (1.0 - audit_bound)) / registered END AS low,
    CASE WHEN withheld = 0 AND registered > 0
        THEN 1.0 * (executed + inherited + not_run) / registered END AS high
FROM (
    SELECT
        v_sweep.sweep_id AS sweep_id,
        v_sweep.sweep AS sweep,
        v_sweep.started AS started,
        v_sweep.build AS build,
        rung_tally.lane AS lane,
        rung_tally.rung AS rung,
        v_rung.height AS height,
        coalesce(v_sweep.audit_bound, 1.0) AS audit_bound,
        CASE WHEN v_rung.height >= coalesce(v_sweep.withheld_from, 99) THEN 1 ELSE 0 END AS withheld,
        sum(CASE WHEN rung_tally.standing = 'pass' AND (rung_tally.evidence <> 'inherited' OR v_rung.height <= 1)
            THEN rung_tally.entries ELSE 0 END) AS executed,
        sum(CASE WHEN rung_tally.standing = 'pass' AND rung_tally.evidence = 'inherited' AND v_rung.height > 1
            THEN rung_tally.entries ELSE 0 END) AS inherited,
        sum(CASE WHEN rung_tally.standing = 'fail' THEN rung_tally.entries ELSE 0 END) AS failed,
        sum(CASE WHEN rung_tally.standing = 'not-run' THEN rung_tally.entries ELSE 0 END) AS not_run,
        sum(rung_tally.entries) AS registered
    FROM rung_tally
    JOIN v_sweep ON v_sweep.sweep_id = rung_tally.sweep_id
    JOIN v_rung ON v_rung.rung = rung_tally.rung
    GROUP BY v_sweep.sweep_id, v_sweep.sweep, v_sweep.started, v_sweep.build, v_sweep.audit_bound, v_sweep.withheld_from,
        rung_tally.lane, rung_tally.rung, v_rung.height
) AS counted
