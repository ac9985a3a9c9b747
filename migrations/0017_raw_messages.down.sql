DROP TABLE raw_messages;
