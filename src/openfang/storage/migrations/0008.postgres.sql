-- What agents do at their time. `body` is what was asked for, as JSON. `due` is when it runs next, 0 if it
-- does not; `last_*` is how it went the last time, `skip*` what of it was left out. Each change but the outcome of a run has a new `version`.
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    root TEXT NOT NULL,
    agent TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    version BIGINT NOT NULL,
    due BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    refusals BIGINT NOT NULL,
    last_due BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    last_outcome TEXT NOT NULL,
    last_reason TEXT NOT NULL,
    last_task TEXT NOT NULL,
    last_session TEXT NOT NULL,
    skips BIGINT NOT NULL,
    skipped_at BIGINT NOT NULL,
    skipped_why TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX schedules_by_owner ON schedules (owner, created_at);
CREATE INDEX schedules_by_task ON schedules (last_task) WHERE last_task <> '';

-- The loop reads the next of each kind: of a thousand that wait, it looks at the first.
CREATE INDEX timers_by_kind ON timers (kind, due, id);
