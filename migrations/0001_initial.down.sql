DROP TABLE operator_actions;
DROP FUNCTION operator_actions_are_append_only();
DROP TABLE instances;
DROP TABLE gaps;
DROP TABLE attempts;
DROP TABLE executions;
DROP TABLE jobs;
