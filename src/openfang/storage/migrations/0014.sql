-- What people added to the node from folders: extensions and skills. Of what was `accepted` everything that
-- was shown is kept in `review`, as JSON: its files, tools and permissions, so that a change of them can be told.
CREATE TABLE installs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    origin TEXT NOT NULL,
    installed_at INTEGER NOT NULL,
    installed_by TEXT NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 0,
    accepted TEXT NOT NULL DEFAULT '',
    accepted_at INTEGER NOT NULL DEFAULT 0,
    accepted_by TEXT NOT NULL DEFAULT '',
    findings TEXT NOT NULL DEFAULT '[]',
    review TEXT NOT NULL DEFAULT '{}'
);
