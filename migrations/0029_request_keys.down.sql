DROP TABLE sexton.request_keys;
