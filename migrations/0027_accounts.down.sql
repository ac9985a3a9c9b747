DROP TABLE sexton.sessions;
DROP TABLE sexton.accounts;
