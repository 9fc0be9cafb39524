-- The planted faults and good twins of a sweep, and what was made of each.
SELECT
    sweep.id AS sweep_id,
    sweep.name AS sweep,
    control.name AS control,
    control.guards AS guards,
    control.expected AS expected,
    control.judged AS judged,
    control.caught AS caught
FROM control
JOIN sweep ON sweep.id = control.sweep_id
