SET LOCAL lock_timeout = '3s';
DROP INDEX sexton.sessions_subject;
ALTER TABLE sexton.sessions DROP COLUMN provider_hash;
