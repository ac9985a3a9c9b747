-- A session of a person whom an identity provider vouched for counts under the settings by which it began.
SET LOCAL lock_timeout = '3s';

ALTER TABLE sexton.sessions ADD COLUMN provider_hash bytea CHECK (length(provider_hash) = 32);
COMMENT ON COLUMN sexton.sessions.provider_hash IS 'Of a subject: SHA-256 of the settings by which it began, which are issuer, client, claim of the name, and role rules; null: a session of an account, or one that began before this column was there and is not accepted any more.';
CREATE INDEX sessions_subject ON sexton.sessions (subject, created_at) WHERE ended_at IS NULL AND subject IS NOT NULL;
