-- One row a sweep: what was run on what, and what its rates rest on. `withheld_from` is the height of the lowest rung
-- whose rate a control withheld; no rate from there up may be shown.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    plan.catalog AS catalog,
    plan.source AS source,
    plan.registered AS registered,
    sweep.device AS device,
    sweep.profile AS profile,
    sweep.policy_name AS policy,
    build.hash AS build,
    sweep.state AS state,
    sweep.started AS started,
    sweep.finished AS finished,
    sweep.wall_s AS wall_s,
    (SELECT count(*) FROM control WHERE control.sweep_id = sweep.id) AS controls_judged,
    (SELECT count(*) FROM control WHERE control.sweep_id = sweep.id AND control.caught) AS controls_caught,
    CAST((sweep.summary -> 'audit') ->> 'bound' AS DOUBLE PRECISION) AS audit_bound,
    (
        SELECT min(v_rung.height) FROM v_rung
        WHERE ((sweep.summary -> 'withheld') ->> v_rung.rung) IS NOT NULL
    ) AS withheld_from
FROM sweep
JOIN plan ON plan.id = sweep.plan_id
JOIN build ON build.id = sweep.build_id
