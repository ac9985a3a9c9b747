-- What is in the failed queue and belongs to no row: recorded by the sweep, so that it can be looked at
-- without taking it out of the queue, and discarded without losing it.

CREATE TABLE raw_messages (
    digest         bytea PRIMARY KEY CHECK (length(digest) = 32),
    kind           text NOT NULL CHECK (kind IN ('unreadable', 'foreign', 'ticket')),
    reason         text NOT NULL,
    body           bytea NOT NULL,
    body_bytes     bigint NOT NULL CHECK (body_bytes >= length(body)),
    properties     text NOT NULL,
    copies         integer NOT NULL CHECK (copies >= 1),
    first_seen     timestamptz NOT NULL,
    last_seen      timestamptz NOT NULL,
    gone_at        timestamptz,
    discard_at     timestamptz,
    discard_by     text,
    discard_reason text,
    discard_pass   timestamptz,
    restore_at     timestamptz,
    CHECK ((discard_at IS NULL) = (discard_by IS NULL) AND (discard_at IS NULL) = (discard_reason IS NULL)),
    CHECK (discard_at IS NOT NULL OR discard_pass IS NULL),
    CHECK (restore_at IS NULL OR gone_at IS NOT NULL)
);
-- What waits for the sweep: marks to carry out, messages to put back.
CREATE INDEX raw_messages_work ON raw_messages (digest)
    WHERE restore_at IS NOT NULL OR (discard_at IS NOT NULL AND gone_at IS NULL);
-- What a complete pass did not see, and the lists.
CREATE INDEX raw_messages_there ON raw_messages (first_seen, digest) WHERE gone_at IS NULL;
-- Retention.
CREATE INDEX raw_messages_gone ON raw_messages (gone_at) WHERE gone_at IS NOT NULL;

COMMENT ON TABLE raw_messages IS 'Messages of the failed queue that no row knows, as the sweep saw them.';
COMMENT ON COLUMN raw_messages.digest IS 'SHA-256 of body and properties: equal messages are one row.';
COMMENT ON COLUMN raw_messages.kind IS 'unreadable, foreign (a task of another program), or ticket (of an execution that there is no row of).';
COMMENT ON COLUMN raw_messages.reason IS 'Why it is nobody''s; at most 2,000 bytes.';
COMMENT ON COLUMN raw_messages.body IS 'Byte for byte; the first 1 MiB.';
COMMENT ON COLUMN raw_messages.body_bytes IS 'Bytes of the whole body; more than body has: it was cut.';
COMMENT ON COLUMN raw_messages.properties IS 'JSON object: the properties and headers that Sexton keeps. Text, since jsonb has no \u0000.';
COMMENT ON COLUMN raw_messages.copies IS 'How many equal messages the pass of last_seen met.';
COMMENT ON COLUMN raw_messages.first_seen IS 'By the database''s clock.';
COMMENT ON COLUMN raw_messages.last_seen IS 'When the last pass that met it began.';
COMMENT ON COLUMN raw_messages.gone_at IS 'When a complete pass did not meet it any more; null: it is in the queue.';
COMMENT ON COLUMN raw_messages.discard_at IS 'When an operator discarded it; the next pass removes it.';
COMMENT ON COLUMN raw_messages.discard_by IS 'Who.';
COMMENT ON COLUMN raw_messages.discard_reason IS 'Why, as given.';
COMMENT ON COLUMN raw_messages.discard_pass IS 'The pass that removed it, by when it began.';
COMMENT ON COLUMN raw_messages.restore_at IS 'When an operator took the discard back; the next pass publishes it again.';
