-- Bulks: what an operator asks for of many failed executions at once, and which ones were meant; and where
-- an operator's action came from.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable: no row is written. The defaults come after, so that they hold for later rows alone: what was
-- recorded before came from nowhere that is known. They are said by the session and not by the statement, so
-- that a program of the version before, and whoever writes with another tool, is recorded as well.
ALTER TABLE operator_actions
    ADD COLUMN from_where   text,
    ADD COLUMN from_address inet,
    ADD COLUMN bulk_id      bigint;
ALTER TABLE operator_actions
    ALTER COLUMN from_where SET DEFAULT nullif(current_setting('sexton.from_where', true), ''),
    ALTER COLUMN from_address SET DEFAULT inet_client_addr();
COMMENT ON COLUMN operator_actions.from_where IS 'Host, process and terminal, as the session said (sexton.from_where); null: it did not say.';
COMMENT ON COLUMN operator_actions.from_address IS 'Where the server saw the session come from; null: a local socket, or of a version before.';
COMMENT ON COLUMN operator_actions.bulk_id IS 'The bulk that did it; null: it was done by itself.';
COMMENT ON COLUMN operator_actions.actor IS 'The operator, or the program that accepted or did something in the place of one.';

CREATE TABLE bulks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text NOT NULL CHECK (kind IN ('requeue', 'discard', 'restore')),
    asked         jsonb NOT NULL,
    asked_at      timestamptz NOT NULL,
    actor         text NOT NULL,
    from_where    text DEFAULT nullif(current_setting('sexton.from_where', true), ''),
    reason        text,
    rate          text CHECK (rate ~ '^[1-9][0-9]{0,5}/[smhd]$'),
    canary        integer CHECK (canary BETWEEN 1 AND 1000),
    pool          text,
    verify        text CHECK (verify IN ('task', 'command')),
    state         text NOT NULL CHECK (state IN ('preparing', 'running', 'paused', 'stopped', 'done')),
    why           text,
    stopped_by    text,
    cursor_at     timestamptz,
    cursor_id     uuid,
    cursor_item   bigint,
    prepared_at   timestamptz,
    canary_passed boolean NOT NULL DEFAULT false,
    paced_since   timestamptz,
    paced         bigint NOT NULL DEFAULT 0,
    selected      bigint NOT NULL DEFAULT 0,
    done          bigint NOT NULL DEFAULT 0,
    refused       bigint NOT NULL DEFAULT 0,
    resolved      bigint NOT NULL DEFAULT 0,
    left_alone    bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    CHECK (state <> 'done' OR ended_at IS NOT NULL)
);
-- What a scheduler has to look at, of the bulks of all times.
CREATE INDEX bulks_alive ON bulks (id) WHERE state IN ('preparing', 'running');

COMMENT ON TABLE bulks IS 'What operators asked for of many failed executions at once. The schedulers carry it out.';
COMMENT ON COLUMN bulks.id IS 'Serial.';
COMMENT ON COLUMN bulks.kind IS 'requeue, discard or restore.';
COMMENT ON COLUMN bulks.asked IS 'Which executions, as asked: a filter, how many ids, or the bulk that is taken back.';
COMMENT ON COLUMN bulks.asked_at IS 'Only what had ended by this instant is meant: when the preview was made.';
COMMENT ON COLUMN bulks.actor IS 'The operator.';
COMMENT ON COLUMN bulks.from_where IS 'Host, process and terminal, as the session said.';
COMMENT ON COLUMN bulks.reason IS 'As given.';
COMMENT ON COLUMN bulks.rate IS 'How fast, such as 50/s; null: as fast as the tickets are published.';
COMMENT ON COLUMN bulks.canary IS 'So many first, and no more before all of them have ended well; null: none.';
COMMENT ON COLUMN bulks.pool IS 'The pool that they are sent to; null: each to its own.';
COMMENT ON COLUMN bulks.verify IS 'Who is asked first whether the effect has happened: the job''s verify task, or a command of the operator''s; null: nobody.';
COMMENT ON COLUMN bulks.state IS 'See the transition table in shared/model/src/bulk.rs.';
COMMENT ON COLUMN bulks.why IS 'Why it is paused or stopped.';
COMMENT ON COLUMN bulks.stopped_by IS 'Who stopped it; null: nobody.';
COMMENT ON COLUMN bulks.cursor_at IS 'Up to where its items are written: executions.finished_at of the last.';
COMMENT ON COLUMN bulks.cursor_id IS 'And its id.';
COMMENT ON COLUMN bulks.cursor_item IS 'Where another bulk is taken back: the ordinal of the last of its items that was looked at.';
COMMENT ON COLUMN bulks.prepared_at IS 'When the last of its items was written; null: not yet.';
COMMENT ON COLUMN bulks.canary_passed IS 'The first have ended well, or an operator said go on.';
COMMENT ON COLUMN bulks.paced_since IS 'When its pace began: the first, or the last resume.';
COMMENT ON COLUMN bulks.paced IS 'How many it has begun since then.';
COMMENT ON COLUMN bulks.selected IS 'How many items it has.';
COMMENT ON COLUMN bulks.done IS 'Of those, how many were done.';
COMMENT ON COLUMN bulks.refused IS 'How many could not be: somebody else was faster.';
COMMENT ON COLUMN bulks.resolved IS 'How many had had their effect, as a command said, and were resolved without running.';
COMMENT ON COLUMN bulks.left_alone IS 'How many a command gave no answer for; they are failed still.';
COMMENT ON COLUMN bulks.created_at IS 'By the database''s clock.';
COMMENT ON COLUMN bulks.ended_at IS 'When nothing was left to do, or it was stopped.';

CREATE TABLE bulk_items (
    bulk_id      bigint NOT NULL REFERENCES bulks (id),
    ordinal      bigint NOT NULL,
    execution_id uuid NOT NULL,
    seen         integer NOT NULL,
    state        text NOT NULL CHECK (state IN ('unasked', 'waiting', 'done', 'refused', 'resolved', 'left')),
    note         text,
    PRIMARY KEY (bulk_id, ordinal)
) WITH (fillfactor = 80); -- Each is written once more.
-- What is still to do, among the many that are done.
CREATE INDEX bulk_items_open ON bulk_items (bulk_id, state, ordinal) WHERE state IN ('unasked', 'waiting');

COMMENT ON TABLE bulk_items IS 'Which executions a bulk means. Without a foreign key to them: it says what was meant, whatever became of it.';
COMMENT ON COLUMN bulk_items.bulk_id IS 'The bulk.';
COMMENT ON COLUMN bulk_items.ordinal IS '1, 2, 3 …, the longest failed first.';
COMMENT ON COLUMN bulk_items.execution_id IS 'The execution.';
COMMENT ON COLUMN bulk_items.seen IS 'Its attempt number when it was selected: a later failure is not meant.';
COMMENT ON COLUMN bulk_items.state IS 'unasked: a command is to say whether its effect has happened; waiting: to be done; done; refused: it was not failed any more; resolved: its effect had happened; left: the command gave no answer.';
COMMENT ON COLUMN bulk_items.note IS 'Why it was refused or left, or what the command said.';

