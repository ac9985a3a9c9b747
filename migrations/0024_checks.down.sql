DROP TABLE sexton.ping_endpoint, sexton.check_wakeups, sexton.pings, sexton.checks, sexton.ping_keys;
DELETE FROM sexton.incidents WHERE subject_kind = 'check';
