-- What callers, addresses and providers of models used up of their rates, on all nodes together: by when, in seconds of
-- the database's clock, all of it has come back. `used` is what a node told of last, `most` how far ahead it may be.
CREATE TABLE rates (
    subject TEXT PRIMARY KEY,
    tat REAL NOT NULL,
    used REAL NOT NULL,
    most REAL NOT NULL
);
