-- What callers, addresses and providers of models used up of their rates, on all nodes together: by when, in seconds of
-- the database's clock, all of it has come back. `used` is what a node told of last, `most` how far ahead it may be.
CREATE TABLE rates (
    subject TEXT PRIMARY KEY,
    tat DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION NOT NULL,
    most DOUBLE PRECISION NOT NULL
);
-- It is not logged: what a crash of the server takes with it is a minute of counting.
ALTER TABLE rates SET UNLOGGED;
ALTER TABLE rates SET (fillfactor = 50);
