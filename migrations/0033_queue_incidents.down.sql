DROP TABLE queue_incidents;
