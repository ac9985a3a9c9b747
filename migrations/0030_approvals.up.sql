-- Approvals: what one person requests waits until others approve it.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.approval_rules (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    label       text CHECK (length(label) BETWEEN 1 AND 200),
    label_value text CHECK (length(label_value) <= 500),
    people      smallint NOT NULL CHECK (people BETWEEN 2 AND 5),
    above       integer NOT NULL CHECK (above >= 1),
    set_at      timestamptz NOT NULL,
    set_by      text NOT NULL,
    CHECK ((label IS NULL) = (label_value IS NULL))
);
COMMENT ON TABLE sexton.approval_rules IS 'Rules by which edits, discards, large bulks and large backfills wait for further people.';
COMMENT ON COLUMN sexton.approval_rules.name IS 'By which people and the audit know the rule.';
COMMENT ON COLUMN sexton.approval_rules.label IS 'Of jobs with this label; null: of all jobs.';
COMMENT ON COLUMN sexton.approval_rules.label_value IS 'The value that the label has then.';
COMMENT ON COLUMN sexton.approval_rules.people IS 'How many people it takes, the one who requests among them.';
COMMENT ON COLUMN sexton.approval_rules.above IS 'Bulks that requeue or cancel, and backfills, wait if they have more executions than this; edits, requeues into another pool and discards always.';
COMMENT ON COLUMN sexton.approval_rules.set_at IS 'When it was set last.';
COMMENT ON COLUMN sexton.approval_rules.set_by IS 'Who set it last.';

CREATE TABLE sexton.approval_requests (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind               text NOT NULL CHECK (kind IN ('edit', 'discard', 'bulk_requeue', 'bulk_discard', 'bulk_cancel', 'backfill')),
    proposal           jsonb NOT NULL CHECK (octet_length(proposal::text) <= 1048576),
    digest             text NOT NULL CHECK (length(digest) = 64),
    people             smallint NOT NULL CHECK (people BETWEEN 2 AND 5),
    rules              text[] NOT NULL,
    requested_by       text NOT NULL CHECK (length(requested_by) <= 500),
    requested_by_names text[] NOT NULL CHECK (cardinality(requested_by_names) > 0),
    reason             text,
    requested_at       timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL CHECK (expires_at > requested_at),
    state              text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'carried_out', 'rejected', 'failed')),
    claim              uuid,
    claimed_at         timestamptz,
    claims             integer NOT NULL DEFAULT 0,
    ended_at           timestamptz,
    ended_by           text,
    outcome            text CHECK (length(outcome) <= 4000),
    bulk_id            bigint,
    CHECK ((state = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX approval_requests_waiting ON sexton.approval_requests (expires_at) WHERE state = 'waiting';
COMMENT ON TABLE sexton.approval_requests IS 'Actions that wait for the approval of further people, and what became of them.';
COMMENT ON COLUMN sexton.approval_requests.id IS 'Its number, in the order of the requests.';
COMMENT ON COLUMN sexton.approval_requests.kind IS 'What is requested.';
COMMENT ON COLUMN sexton.approval_requests.proposal IS 'The whole action as it will be carried out, with what the person had seen.';
COMMENT ON COLUMN sexton.approval_requests.digest IS 'SHA-256 of the proposal without the moment of its preview: an equal request that waits is not made twice.';
COMMENT ON COLUMN sexton.approval_requests.people IS 'How many people it takes, the one who requests among them; a stricter rule that is set meanwhile raises it.';
COMMENT ON COLUMN sexton.approval_requests.rules IS 'The names of the rules by which it waits.';
COMMENT ON COLUMN sexton.approval_requests.requested_by IS 'Who requested it, by the name in the audit.';
COMMENT ON COLUMN sexton.approval_requests.requested_by_names IS 'By which names that person is known: nobody with one of them approves it.';
COMMENT ON COLUMN sexton.approval_requests.reason IS 'Why, for those who approve and for the audit.';
COMMENT ON COLUMN sexton.approval_requests.requested_at IS 'When, by the database''s clock.';
COMMENT ON COLUMN sexton.approval_requests.expires_at IS 'From when on it is no longer carried out.';
COMMENT ON COLUMN sexton.approval_requests.state IS 'waiting until it has ended; that it is approved or has expired follows from the approvals and the time.';
COMMENT ON COLUMN sexton.approval_requests.claim IS 'The process that carries it out.';
COMMENT ON COLUMN sexton.approval_requests.claimed_at IS 'Since when; after two minutes another one may.';
COMMENT ON COLUMN sexton.approval_requests.claims IS 'How many processes have begun to carry it out.';
COMMENT ON COLUMN sexton.approval_requests.ended_at IS 'When it was carried out, rejected, or failed.';
COMMENT ON COLUMN sexton.approval_requests.ended_by IS 'Who approved it last, or rejected it.';
COMMENT ON COLUMN sexton.approval_requests.outcome IS 'What became of it, in words.';
COMMENT ON COLUMN sexton.approval_requests.bulk_id IS 'bulks.id of the bulk that it became.';

CREATE TABLE sexton.approvals (
    request_id  bigint NOT NULL REFERENCES sexton.approval_requests ON DELETE CASCADE,
    actor       text NOT NULL CHECK (length(actor) <= 500),
    actor_names text[] NOT NULL CHECK (cardinality(actor_names) > 0),
    reason      text,
    approved_at timestamptz NOT NULL,
    PRIMARY KEY (request_id, actor)
);
COMMENT ON TABLE sexton.approvals IS 'Who has approved which request.';
COMMENT ON COLUMN sexton.approvals.request_id IS 'approval_requests.id.';
COMMENT ON COLUMN sexton.approvals.actor IS 'Who approved it, by the name in the audit.';
COMMENT ON COLUMN sexton.approvals.actor_names IS 'By which names that person is known.';
COMMENT ON COLUMN sexton.approvals.reason IS 'Why, if given.';
COMMENT ON COLUMN sexton.approvals.approved_at IS 'When, by the database''s clock.';
