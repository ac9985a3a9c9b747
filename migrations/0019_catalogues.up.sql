-- What the catalogues of workers know, for whoever puts right what failed. First, verify tasks: which task is
-- asked whether the effect of a failed execution has happened, and the questions; a question is an execution like
-- any other, of a job of its own, `verify.<task type>`. Second, what the params of each task type must hold.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable, and without a default: no row is written.
ALTER TABLE jobs ADD COLUMN verify_task text;
ALTER TABLE executions ADD COLUMN asks_about uuid;
COMMENT ON COLUMN jobs.verify_task IS 'The task type that is asked whether the effect of a failed execution has happened, before it is requeued; null: nobody is.';
COMMENT ON COLUMN executions.asks_about IS 'The failed execution whose effect it asks about, and whose key and job its task finds; null: it is no question. Without a foreign key: it may outlive that one.';
COMMENT ON COLUMN jobs.name IS 'Unique; <service>.<jobName> by convention; foreign.<type> for tasks published by others, verify.<type> for questions.';

CREATE TABLE bulk_questions (
    bulk_id  bigint NOT NULL REFERENCES bulks (id) ON DELETE CASCADE,
    ordinal  bigint NOT NULL,
    question uuid NOT NULL,
    answer   text CHECK (answer IN ('happened', 'not_yet', 'none')),
    PRIMARY KEY (bulk_id, ordinal)
) WITH (fillfactor = 80); -- Each is written once more.
-- What is still to be heard, among the many that are answered.
CREATE INDEX bulk_questions_open ON bulk_questions (bulk_id, ordinal) WHERE answer IS NULL;

COMMENT ON TABLE bulk_questions IS 'Which executions ask for a bulk whether the effect of its items has happened.';
COMMENT ON COLUMN bulk_questions.bulk_id IS 'The bulk.';
COMMENT ON COLUMN bulk_questions.ordinal IS 'Its item.';
COMMENT ON COLUMN bulk_questions.question IS 'The execution that asks. Without a foreign key: retention removes it when it has long ended.';
COMMENT ON COLUMN bulk_questions.answer IS 'happened; not_yet; none: it could not be asked, or said neither. Null: not heard yet.';

CREATE TABLE offers (
    instance_id   uuid NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    task_type     text NOT NULL,
    params_schema jsonb,
    PRIMARY KEY (instance_id, task_type)
);
-- Who offers a task type.
CREATE INDEX offers_of_type ON offers (task_type);

COMMENT ON TABLE offers IS 'What workers offer, each as its catalogue said at its start; removed when it says goodbye.';
COMMENT ON COLUMN offers.instance_id IS 'The worker process.';
COMMENT ON COLUMN offers.task_type IS 'A task type that it runs.';
COMMENT ON COLUMN offers.params_schema IS 'JSON Schema of the params, at most 64 KiB of JSON; null: the catalogue has none.';
