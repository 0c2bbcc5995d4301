-- The one clock that all nodes go by, in nanoseconds since the epoch.
CREATE FUNCTION clock_ns() RETURNS BIGINT LANGUAGE sql VOLATILE
RETURN (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint * 1000;

-- Where a process runs, when it last gave a sign of life, and who sees to what it left when it gave no more.
ALTER TABLE processes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN beat_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE processes ALTER COLUMN beat_at SET DEFAULT clock_ns();
ALTER TABLE processes ADD COLUMN heir TEXT NOT NULL DEFAULT '';
UPDATE processes SET node = COALESCE((SELECT value FROM settings WHERE name = 'node'), '');
CREATE INDEX processes_open ON processes (id) WHERE ended_at IS NULL;

-- The nodes that share a database, each with the process that serves it.
CREATE TABLE members (
    node TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    version TEXT NOT NULL,
    schema BIGINT NOT NULL,
    address TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    beat_at BIGINT NOT NULL,
    draining BIGINT NOT NULL DEFAULT 0,
    left_at BIGINT
);
