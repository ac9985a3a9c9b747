-- What tasks hand back.
--
-- Both columns are added empty, so the tables are not rewritten. The CHECK holds for every row written
-- from now on; those that are there have no result, so they need not be read for it.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

ALTER TABLE attempts ADD COLUMN result jsonb;
COMMENT ON COLUMN attempts.result IS 'What its task handed back; at most 64 KiB of JSON. Null: nothing, or it did not end by itself.';

ALTER TABLE executions ADD COLUMN result jsonb;
ALTER TABLE executions ADD CONSTRAINT executions_result
    CHECK (result IS NULL OR state = 'succeeded') NOT VALID;
COMMENT ON COLUMN executions.result IS 'Of the attempt that succeeded; at most 64 KiB of JSON. Null: nothing, or not succeeded.';
