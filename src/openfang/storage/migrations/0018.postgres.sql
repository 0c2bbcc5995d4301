-- What only one node has at a time, and until when, in milliseconds by the clock of the database. `term` grows
-- with each holder: who comes with an old one speaks of what is over.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    term BIGINT NOT NULL,
    until BIGINT NOT NULL
);
