-- Where a process runs, when it last gave a sign of life, and who sees to what it left when it gave no more.
-- A file's processes are known by their locks: they give none.
ALTER TABLE processes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN beat_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE processes ADD COLUMN heir TEXT NOT NULL DEFAULT '';
UPDATE processes SET node = COALESCE((SELECT value FROM settings WHERE name = 'node'), '');
CREATE INDEX processes_open ON processes (id) WHERE ended_at IS NULL;

-- The nodes that share a database, each with the process that serves it.
CREATE TABLE members (
    node TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    version TEXT NOT NULL,
    schema INTEGER NOT NULL,
    address TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    draining INTEGER NOT NULL DEFAULT 0,
    left_at INTEGER
);
