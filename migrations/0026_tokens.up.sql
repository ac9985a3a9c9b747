-- Tokens by which people and programs use the API.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.tokens (
    id           text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{16}$'),
    name         text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    secret_hash  bytea NOT NULL CHECK (length(secret_hash) = 32),
    role         text NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_at   timestamptz NOT NULL,
    created_by   text NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE UNIQUE INDEX tokens_name ON sexton.tokens (name) WHERE revoked_at IS NULL;
COMMENT ON TABLE sexton.tokens IS 'Tokens by which people and programs use the API.';
COMMENT ON COLUMN sexton.tokens.id IS 'The second part of the token''s text; no secret.';
COMMENT ON COLUMN sexton.tokens.name IS 'Unique among those that are not revoked; in the audit as the actor.';
COMMENT ON COLUMN sexton.tokens.secret_hash IS 'SHA-256 of the third part, which is stored nowhere.';
COMMENT ON COLUMN sexton.tokens.role IS 'What it may do.';
COMMENT ON COLUMN sexton.tokens.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.tokens.created_by IS 'Who created it.';
COMMENT ON COLUMN sexton.tokens.expires_at IS 'From when on it is refused; null: never.';
COMMENT ON COLUMN sexton.tokens.last_used_at IS 'When it was used last, to the minute; null: never.';
COMMENT ON COLUMN sexton.tokens.revoked_at IS 'From when on it is refused, by a person''s decision; null: it was not revoked.';
COMMENT ON COLUMN sexton.tokens.revoked_by IS 'Who revoked it.';
