-- The rungs of the ladder, lowest first. A test holds this equal to neuronqa.domain.outcome.LADDER.
SELECT 'registered' AS rung, 0 AS height
UNION ALL SELECT 'eligible', 1
UNION ALL SELECT 'builds', 2
UNION ALL SELECT 'runs', 3
UNION ALL SELECT 'native', 4
UNION ALL SELECT 'full-graph', 5
UNION ALL SELECT 'state', 6
UNION ALL SELECT 'parity', 7
UNION ALL SELECT 'trains', 8
UNION ALL SELECT 'fits', 9
