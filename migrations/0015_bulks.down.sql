DROP TABLE bulk_items;
DROP TABLE bulks;
ALTER TABLE operator_actions DROP COLUMN from_where, DROP COLUMN from_address, DROP COLUMN bulk_id;
