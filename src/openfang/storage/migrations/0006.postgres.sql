-- Memories with where they come from, and the words by which they are found. Of those that are
-- older nobody knows where they come from.
CREATE TABLE memory_before AS SELECT * FROM memory;
DROP TABLE memory;

CREATE TABLE memory (
    id BIGSERIAL PRIMARY KEY,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    labels BIGINT NOT NULL,
    stored_at BIGINT NOT NULL,
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
SELECT space, name, labels, stored_at, '', '', '', '', value, trim(regexp_replace(
    regexp_replace(replace(lower(normalize(left(concat_ws(' ', name, (
        SELECT string_agg(part #>> '{}', ' ')
        FROM (
            SELECT jsonb_path_query(value::jsonb, 'strict $.** ? (@.type() == "string" || @.type() == "number")')
            UNION ALL
            SELECT jsonb_path_query(value::jsonb, 'strict $.** ? (@.type() == "object").keyvalue().key')
        ) AS parts (part)
    )), 50000), NFKD)), 'ß', 'ss'), '[\u0300-\u036f]', '', 'g'),
    '[^[:alnum:]]+', ' ', 'g'
))
FROM memory_before ORDER BY stored_at, space, name;
DROP TABLE memory_before;

CREATE UNIQUE INDEX memory_by_name ON memory (space, name);
CREATE INDEX memory_by_time ON memory (space, id);

-- Words are folded before they come here, so that both dialects find the same: the server's own
-- idea of a word would depend on its language.
CREATE INDEX memory_words ON memory USING gin (array_to_tsvector(string_to_array(words, ' ')));
