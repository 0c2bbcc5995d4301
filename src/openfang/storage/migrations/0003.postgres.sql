-- Conversations: one for each agent, caller and name.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    messages BIGINT NOT NULL,
    labels BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX sessions_by_name ON sessions (agent, caller, name);

CREATE INDEX sessions_by_time ON sessions (updated_at, id);

CREATE INDEX sessions_by_caller ON sessions (caller, updated_at, id);

CREATE INDEX sessions_by_agent ON sessions (agent, updated_at, id);

CREATE INDEX sessions_by_both ON sessions (caller, agent, updated_at, id);

CREATE TABLE turns (
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    run TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    speaker TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);

-- Runs of agents. One that is running while its process is gone can be taken over.
CREATE TABLE agent_runs (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    caller TEXT NOT NULL,
    state TEXT NOT NULL,
    ending TEXT,
    usage TEXT,
    labels BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    process TEXT NOT NULL,
    taken BIGINT NOT NULL
);

CREATE INDEX agent_runs_by_session ON agent_runs (session, state);

CREATE INDEX agent_runs_under_way ON agent_runs (process) WHERE state = 'running';

-- Calls of a run that have no result yet, and may have had their effect.
CREATE TABLE begun (
    run TEXT NOT NULL,
    wish TEXT NOT NULL,
    PRIMARY KEY (run, wish)
);
