-- Memories with where they come from, and the words by which they are found. Of those that are
-- older nobody knows where they come from.
CREATE TABLE memory_before AS SELECT * FROM memory;
DROP TABLE memory;

CREATE TABLE memory (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    labels INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    stored_by TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    trace TEXT NOT NULL,
    call_id TEXT NOT NULL,
    value TEXT NOT NULL,
    words TEXT NOT NULL
);

INSERT INTO memory (
    space, name, labels, stored_at, stored_by, asked_by, trace, call_id, value, words
)
SELECT space, name, labels, stored_at, '', '', '', '', value, words_of(name, value)
FROM memory_before ORDER BY stored_at, space, name;
DROP TABLE memory_before;

CREATE UNIQUE INDEX memory_by_name ON memory (space, name);
CREATE INDEX memory_by_time ON memory (space, id);

-- Words are folded before they come here. Each stands behind the name of its space.
CREATE VIRTUAL TABLE memory_words USING fts5(words, content='', tokenize="ascii tokenchars '_'");

INSERT INTO memory_words (rowid, words)
SELECT id, replace(' ' || words, ' ', ' ' || hex(space) || '_') FROM memory;
