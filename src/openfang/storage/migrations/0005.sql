-- Work that outlives its request. `body` is what was said and what came out of it, as JSON. `process`
-- is at work on it, `final` is 1 once nothing follows. `size` is how long the body is.
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    context TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    state TEXT NOT NULL,
    final INTEGER NOT NULL,
    version INTEGER NOT NULL,
    process TEXT NOT NULL,
    labels INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX tasks_by_message ON tasks (caller, agent, message) WHERE message <> '';
CREATE INDEX tasks_by_change ON tasks (caller, changed_at, id);
CREATE INDEX tasks_by_end ON tasks (final, seq);
CREATE INDEX tasks_by_session ON tasks (session);

CREATE TABLE task_events (
    task TEXT NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (task, n)
);

-- Who is told of what happens to a task. `body` is sealed.
CREATE TABLE pushes (
    task TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (task, id)
);

-- What is to be done at its time, and again if that failed. Of what is done for one `party`, or at one
-- `place`, only some runs at once.
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    due INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    body TEXT NOT NULL,
    party TEXT NOT NULL,
    place TEXT NOT NULL
);

CREATE INDEX timers_by_time ON timers (due);
CREATE INDEX timers_by_subject ON timers (kind, subject);

-- Agents elsewhere, as they introduced themselves when they were last asked.
CREATE TABLE peers (
    name TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    card TEXT NOT NULL,
    seen_at INTEGER NOT NULL
);

-- Who began which task at an agent elsewhere, and in which conversation there.
CREATE TABLE peer_tasks (
    peer TEXT NOT NULL,
    task TEXT NOT NULL,
    caller TEXT NOT NULL,
    context TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (peer, task)
);

CREATE INDEX peer_tasks_by_context ON peer_tasks (peer, context);
CREATE INDEX peer_tasks_by_time ON peer_tasks (peer, seen_at);

-- The task that a run of an agent works on.
ALTER TABLE agent_runs ADD COLUMN task TEXT NOT NULL DEFAULT '';
CREATE INDEX agent_runs_by_task ON agent_runs (task) WHERE task <> '';
