DROP TABLE sexton.tokens;
