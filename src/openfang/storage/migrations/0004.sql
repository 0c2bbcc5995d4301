-- What a run was bound to by whoever asked: who goes on with it is bound to the same.
ALTER TABLE agent_runs ADD COLUMN origin TEXT NOT NULL DEFAULT '';

-- What an agent used up lately is added up from its runs.
CREATE INDEX agent_runs_by_agent ON agent_runs (agent, started_at);
