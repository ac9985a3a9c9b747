DROP TRIGGER check_ledger_of_job ON sexton.jobs;
DROP FUNCTION sexton.follow_job_with_ledger_check();
DROP TABLE sexton.unaccounted_firings, sexton.ledger_checks;
