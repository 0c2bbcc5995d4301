-- What agents have to do for somebody: `space` is whose board it is on. Nobody has it while `owner` is
-- empty, or once `claimed_until` is over; `changed_by` is the call that changed it last. Long texts stand
-- last: to read what stands behind them is to read them.
CREATE TABLE board (
    id TEXT PRIMARY KEY,
    space TEXT NOT NULL,
    status TEXT NOT NULL,
    assigned_to TEXT NOT NULL,
    priority BIGINT NOT NULL,
    posted_by TEXT NOT NULL,
    posted_at BIGINT NOT NULL,
    owner TEXT NOT NULL,
    claimed_until BIGINT NOT NULL,
    completed_at BIGINT NOT NULL,
    labels BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    result TEXT NOT NULL
);

-- All that a search looks at, so that it reads no task that it does not bring.
CREATE INDEX board_by_status ON board (
    space, status, priority, posted_at, id, assigned_to, claimed_until, completed_at,
    owner, posted_by
);
CREATE INDEX board_by_call ON board (changed_by);
