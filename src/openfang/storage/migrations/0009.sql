-- What runs used up, by the minute. It stays when sessions and runs are deleted, and holds nothing
-- that was said. `purse` is the agent whose budget it was taken from, `caller` began the chain.
CREATE TABLE ledger (
    run TEXT NOT NULL,
    minute INTEGER NOT NULL,
    chain TEXT NOT NULL,
    agent TEXT NOT NULL,
    purse TEXT NOT NULL,
    caller TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    tool_calls INTEGER NOT NULL,
    schema_bytes INTEGER NOT NULL,
    PRIMARY KEY (run, minute)
);

CREATE INDEX ledger_by_time ON ledger (minute);
CREATE INDEX ledger_by_purse ON ledger (purse, minute);

-- The same by the day, so that a month is added up at once. Calls that somebody makes without an
-- agent are only here.
CREATE TABLE ledger_days (
    day INTEGER NOT NULL,
    caller TEXT NOT NULL,
    agent TEXT NOT NULL,
    purse TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    tool_calls INTEGER NOT NULL,
    schema_bytes INTEGER NOT NULL,
    PRIMARY KEY (day, caller, agent, purse)
);

CREATE INDEX ledger_days_by_caller ON ledger_days (caller, day);
CREATE INDEX ledger_days_by_purse ON ledger_days (purse, day);
