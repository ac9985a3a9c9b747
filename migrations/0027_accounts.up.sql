-- Accounts by which people log in to the pages and the API, and their sessions.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.accounts (
    name            text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    password_hash   text NOT NULL CHECK (password_hash LIKE '$argon2id$%' AND length(password_hash) <= 500),
    password_set_at timestamptz NOT NULL,
    role            text NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_at      timestamptz NOT NULL,
    created_by      text NOT NULL,
    disabled_at     timestamptz,
    disabled_by     text,
    last_log_in_at  timestamptz,
    CHECK ((disabled_at IS NULL) = (disabled_by IS NULL))
);
COMMENT ON TABLE sexton.accounts IS 'Accounts by which people log in.';
COMMENT ON COLUMN sexton.accounts.name IS 'In the audit as the actor.';
COMMENT ON COLUMN sexton.accounts.password_hash IS 'Argon2id, in the PHC format. Operators and viewers of the database may not read it.';
COMMENT ON COLUMN sexton.accounts.password_set_at IS 'Since when the password is this one.';
COMMENT ON COLUMN sexton.accounts.role IS 'What it may do.';
COMMENT ON COLUMN sexton.accounts.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN sexton.accounts.created_by IS 'Who created it.';
COMMENT ON COLUMN sexton.accounts.disabled_at IS 'From when on nobody can log in with it; null: it is enabled.';
COMMENT ON COLUMN sexton.accounts.disabled_by IS 'Who disabled it.';
COMMENT ON COLUMN sexton.accounts.last_log_in_at IS 'When somebody logged in with it last; null: never.';

CREATE TABLE sexton.sessions (
    secret_hash  bytea PRIMARY KEY CHECK (length(secret_hash) = 32),
    account      text REFERENCES sexton.accounts (name),
    subject      text CHECK (length(subject) BETWEEN 1 AND 200),
    role         text CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    CHECK ((account IS NULL) <> (subject IS NULL)),
    CHECK ((subject IS NULL) = (role IS NULL))
);
CREATE INDEX sessions_account ON sexton.sessions (account, created_at) WHERE ended_at IS NULL;
COMMENT ON TABLE sexton.sessions IS 'Sessions of people who have logged in.';
COMMENT ON COLUMN sexton.sessions.secret_hash IS 'SHA-256 of 256 random bits, which only the browser''s cookie has.';
COMMENT ON COLUMN sexton.sessions.account IS 'The account that logged in; its role counts.';
COMMENT ON COLUMN sexton.sessions.subject IS 'Instead of an account: the name that another system vouched for.';
COMMENT ON COLUMN sexton.sessions.role IS 'What that subject may do.';
COMMENT ON COLUMN sexton.sessions.created_at IS 'When the log-in was, by the database''s clock.';
COMMENT ON COLUMN sexton.sessions.last_used_at IS 'When it was used last, to the minute; it ends 12 hours later.';
COMMENT ON COLUMN sexton.sessions.expires_at IS 'When it ends in any case.';
COMMENT ON COLUMN sexton.sessions.ended_at IS 'When a log-out, or a change of the account, ended it; null: nothing did.';
