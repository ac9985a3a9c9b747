ALTER TABLE executions DROP COLUMN result;
ALTER TABLE attempts DROP COLUMN result;
