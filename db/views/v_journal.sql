-- What happened to root causes: who moved which from where to where, and why.
SELECT
    cluster_event.at AS at,
    cluster.id AS cluster_id,
    cluster.lane AS lane,
    cluster.kind AS kind,
    cluster.detail AS detail,
    cluster_event.actor AS actor,
    cluster_event.action AS action,
    cluster_event.before AS before_state,
    cluster_event.after AS after_state,
    cluster_event.reason AS reason,
    sweep.name AS sweep
FROM cluster_event
JOIN cluster ON cluster.id = cluster_event.cluster_id
LEFT JOIN sweep ON sweep.id = cluster_event.sweep_id
