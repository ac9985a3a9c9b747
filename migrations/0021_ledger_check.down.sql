DROP TABLE sexton.unaccounted_firings, sexton.ledger_checks;
