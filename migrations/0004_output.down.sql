ALTER TABLE instances DROP COLUMN pool_slots;
COMMENT ON COLUMN attempts.output IS 'What it wrote: lines with stream and time, head and tail, dropped bytes counted.';
ALTER TABLE attempts DROP COLUMN progress;
DROP TABLE attempt_output;
