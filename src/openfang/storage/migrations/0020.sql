-- By what name the server knows the connection on which a process writes.
ALTER TABLE processes ADD COLUMN writer TEXT NOT NULL DEFAULT '';
-- Which process has taken what is due: if that is gone, it is due again at once.
ALTER TABLE timers ADD COLUMN taken_by TEXT NOT NULL DEFAULT '';
-- When triggers have started an agent, on any node: they may so often in an hour.
CREATE TABLE trigger_starts (
    name TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX trigger_starts_by_name ON trigger_starts (name, at);
-- What the files of each node ask for: what one of them lacks may be another's.
CREATE TABLE asked (
    node TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (node, kind, name)
);
