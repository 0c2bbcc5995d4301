-- One name, one key in force. Of twins that were made side by side the first keeps the name.
UPDATE keys SET name = name || '-' || id
WHERE revoked_at IS NULL AND EXISTS (
    SELECT 1 FROM keys AS first
    WHERE first.name = keys.name AND first.revoked_at IS NULL
        AND (first.created_at, first.id) < (keys.created_at, keys.id)
);

CREATE UNIQUE INDEX keys_in_force ON keys (name) WHERE revoked_at IS NULL;

-- Runs are kept by the digest of what their callers named them.
UPDATE runs SET id = sha256(id);
