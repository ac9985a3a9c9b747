-- What columns of executions mean by now. In a file of its own: it waits for a vacuum of the table, and nobody waits behind it
-- as long as it has locked nothing else.
SET LOCAL lock_timeout = '3s';

COMMENT ON COLUMN executions.lease_until IS 'When the open attempt''s lease ends by the database''s clock, as its last renewal wrote it; null unless running. For people, and to tell one renewal from the next: whether an attempt is lost is judged by how long nobody saw a new one.';
COMMENT ON COLUMN executions.claimed_by IS '<instance>:<pid> of the process that inserted the row; of a trigger <user>@<host>:<pid> of who asked for it.';
