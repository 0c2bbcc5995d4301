-- How far readers have got in the log is kept for the chain of each node; so far there was one node.
UPDATE settings SET name = name || '@' || (SELECT own.value FROM settings AS own WHERE own.name = 'node')
WHERE (name = 'ledger.folded' OR name LIKE 'sink:%' OR name LIKE 'anchor:%')
AND EXISTS (SELECT 1 FROM settings AS own WHERE own.name = 'node');
