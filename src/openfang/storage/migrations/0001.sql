-- The audit log. `hash` covers every other column and the hash before it; see audit/chain.py.
-- A file has one node, so that the number alone is the key: appending to it costs half as much.
CREATE TABLE audit (
    node TEXT NOT NULL,
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    level TEXT NOT NULL,
    call_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    context TEXT NOT NULL,
    hash BLOB NOT NULL
);

CREATE VIEW task_audits AS
SELECT
    seq AS audit_id,
    NULLIF(task_id, '') AS task_id,
    level,
    event AS event_type,
    payload,
    context,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000000.0, 'unixepoch') AS created_at
FROM audit;

CREATE TABLE checkpoints (
    node TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    signer TEXT NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (node, seq)
);

-- Processes that make calls. One that vanished without `ended_at` left calls that must be ended.
CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    started_at INTEGER NOT NULL,
    low_water INTEGER NOT NULL,
    ended_at INTEGER
);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
);

CREATE TABLE specs (
    hash TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    frozen_by TEXT NOT NULL,
    frozen_at INTEGER NOT NULL
);

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    run TEXT NOT NULL,
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    scope TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answered_at INTEGER,
    answered_by TEXT
);

CREATE INDEX approvals_by_caller ON approvals (caller, tool, state);

CREATE TABLE names (
    tool TEXT PRIMARY KEY,
    wire_name TEXT NOT NULL UNIQUE
);

CREATE TABLE pins (
    tool TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    definition TEXT NOT NULL,
    first_seen INTEGER NOT NULL
);

CREATE TABLE memory (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    labels INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    PRIMARY KEY (space, name)
);

CREATE TABLE blobs (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    body BLOB NOT NULL,
    labels INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

CREATE INDEX blobs_by_expiry ON blobs (expires_at);

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    labels INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);
