-- What SQLite has by itself, under the same names, so that the stores speak to both. No record that
-- somebody made unreadable, or that holds what jsonb cannot (NUL), keeps the others from being read.
CREATE FUNCTION readable_json(written TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN written::jsonb;
EXCEPTION WHEN OTHERS THEN
    BEGIN
        RETURN regexp_replace(
            written, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g'
        )::jsonb;
    EXCEPTION WHEN OTHERS THEN
        RETURN '{}'::jsonb;
    END;
END
$$;

CREATE FUNCTION json_valid(written TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    PERFORM written::json;
    RETURN TRUE;
EXCEPTION WHEN OTHERS THEN
    RETURN FALSE;
END
$$;

CREATE FUNCTION json_extract(written TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT
RETURN readable_json(written) #>> string_to_array(substr(path, 3), '.');

CREATE FUNCTION json_extract(written TEXT, VARIADIC paths TEXT []) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT
RETURN (
    SELECT jsonb_agg(one.whole #> string_to_array(substr(path, 3), '.') ORDER BY n)::text
    FROM (SELECT readable_json(written) AS whole OFFSET 0) AS one,
        unnest(paths) WITH ORDINALITY AS wanted (path, n)
);

CREATE FUNCTION instr(hay TEXT, needle TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE STRICT
RETURN strpos(hay, needle);

CREATE FUNCTION typeof(value TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE
RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'text' END;

-- The audit log. `hash` covers every other column and the hash before it; see audit/chain.py.
CREATE TABLE audit (
    node TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    event TEXT NOT NULL,
    level TEXT NOT NULL,
    call_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    context TEXT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (node, seq)
);

CREATE VIEW task_audits AS
SELECT
    seq AS audit_id,
    NULLIF(task_id, '') AS task_id,
    level,
    event AS event_type,
    readable_json(payload) AS payload,
    readable_json(context) AS context,
    to_timestamp(at / 1000000000.0) AS created_at
FROM audit;

CREATE TABLE checkpoints (
    node TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    signer TEXT NOT NULL,
    signature BYTEA NOT NULL,
    PRIMARY KEY (node, seq)
);

-- Processes that make calls. One that vanished without `ended_at` left calls that must be ended.
CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    started_at BIGINT NOT NULL,
    low_water BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
);

CREATE TABLE specs (
    hash TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    content BYTEA NOT NULL,
    frozen_by TEXT NOT NULL,
    frozen_at BIGINT NOT NULL
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
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    answered_at BIGINT,
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
    first_seen BIGINT NOT NULL
);

CREATE TABLE memory (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    labels BIGINT NOT NULL,
    stored_at BIGINT NOT NULL,
    PRIMARY KEY (space, name)
);

CREATE TABLE blobs (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    body BYTEA NOT NULL,
    labels BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX blobs_by_expiry ON blobs (expires_at);

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    labels BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);
