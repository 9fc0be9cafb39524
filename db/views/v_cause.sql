-- One row a sweep and root cause: what it blocks there, and its turn in the order of fixes.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    sweep.started AS started,
    cluster.id AS cluster_id,
    cluster.lane AS lane,
    cluster.key AS cause_key,
    cluster."check" AS failing_check,
    cluster.kind AS kind,
    cluster.detail AS detail,
    cluster.rung AS rung,
    cluster.at_fault AS at_fault,
    cluster_count.state AS state,
    cluster.state AS state_now,
    cluster.assignee AS assignee,
    cluster_count.workloads AS workloads,
    cluster_count.cases AS cases,
    cluster_count.entries AS entries,
    cluster_count.downloads AS downloads,
    cluster_count.sole_entries AS sole_entries,
    cluster_count.place AS place,
    cluster_count.unlocked_entries AS unlocked_entries
FROM cluster_count
JOIN cluster ON cluster.id = cluster_count.cluster_id
JOIN sweep ON sweep.id = cluster_count.sweep_id
