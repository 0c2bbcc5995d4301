-- Of a question: who began the chain, what a person may want to know of the call besides, and by
-- which way the answer came. Ten thousand open ones are not read when one is looked for.
ALTER TABLE approvals ADD COLUMN via TEXT;
ALTER TABLE approvals ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN about TEXT NOT NULL DEFAULT '{}';

DROP INDEX approvals_by_caller;
CREATE INDEX approvals_by_call ON approvals (caller, tool, scope, arguments_hash);
CREATE INDEX approvals_by_state ON approvals (state, expires_at);
CREATE INDEX approvals_by_asker ON approvals (caller, state, expires_at);
CREATE INDEX approvals_by_answer ON approvals (answered_at);
CREATE INDEX approvals_by_run ON approvals (run, state);
