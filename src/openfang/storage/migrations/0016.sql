-- Sessions of MCP clients, where several nodes share a database: `node` has one, and `generation` counts those
-- that have had it. `talk` is what was agreed on with the client and what it wants to hear, as JSON.
CREATE TABLE mcp_sessions (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    toolset TEXT NOT NULL,
    agent TEXT NOT NULL,
    talk TEXT NOT NULL,
    node TEXT NOT NULL,
    generation BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX mcp_sessions_used_at ON mcp_sessions (used_at);
-- Browsers that are signed in, where several nodes share a database: what they are known by, and the key that
-- each signed in with, which only the browser can unmask.
CREATE TABLE browsers (
    mark TEXT PRIMARY KEY,
    masked TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL
);
