-- What was held back at first sight is not accepted, and `findings` say why, as JSON. `tool` is the id of
-- whatever is pinned: a tool, a prompt, a template, a resource, or the instructions of a server.
ALTER TABLE pins ADD COLUMN accepted INTEGER NOT NULL DEFAULT 1;
ALTER TABLE pins ADD COLUMN findings TEXT NOT NULL DEFAULT '[]';
