-- What agents have to do for somebody: `space` is whose board it is on. Nobody has it while `owner` is
-- empty, or once `claimed_until` is over; `changed_by` is the call that changed it last.
CREATE TABLE board (
    id TEXT PRIMARY KEY,
    space TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    assigned_to TEXT NOT NULL,
    priority INTEGER NOT NULL,
    posted_by TEXT NOT NULL,
    posted_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    result TEXT NOT NULL,
    completed_at INTEGER NOT NULL,
    labels INTEGER NOT NULL,
    changed_by TEXT NOT NULL
);

CREATE INDEX board_by_status ON board (space, status, priority, posted_at);
