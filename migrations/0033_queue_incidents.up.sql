-- What RabbitMQ did to queues and messages that no program had asked it for, as schedulers and workers saw it: for
-- `sexton doctor`, which names the policy that is probably behind it.
CREATE TABLE queue_incidents (
    queue    text NOT NULL,
    kind     text NOT NULL CHECK (kind IN ('expired', 'overflowed', 'refused', 'vanished', 'missing')),
    messages bigint NOT NULL CHECK (messages >= 0),
    times    bigint NOT NULL CHECK (times >= 1),
    first_at timestamptz NOT NULL,
    last_at  timestamptz NOT NULL,
    PRIMARY KEY (queue, kind)
) WITH (fillfactor = 50); -- Few rows, each written again and again.

COMMENT ON TABLE queue_incidents IS 'What RabbitMQ did to queues of its own accord, mostly by a policy; at most 1,000 rows, each removed a month after it was last written.';
COMMENT ON COLUMN queue_incidents.queue IS 'The queue''s name.';
COMMENT ON COLUMN queue_incidents.kind IS 'expired: messages expired in a main queue; overflowed: its oldest were dropped; refused: it took no further ones; vanished: it did not exist any more; missing: parked messages were not in the failed queue any more.';
COMMENT ON COLUMN queue_incidents.messages IS 'To how many messages it happened, counts of the week before the last time.';
COMMENT ON COLUMN queue_incidents.times IS 'How often a process has written it down; each does at most every second.';
COMMENT ON COLUMN queue_incidents.first_at IS 'When first, by the database''s clock.';
COMMENT ON COLUMN queue_incidents.last_at IS 'When last.';
