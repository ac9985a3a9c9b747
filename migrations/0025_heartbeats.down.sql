DROP TABLE sexton.dead_man;
DROP TRIGGER write_heartbeat ON sexton.executions;
DROP TRIGGER add_heartbeat_address ON sexton.jobs;
DROP FUNCTION sexton.write_heartbeat(), sexton.add_heartbeat_address(), sexton.heartbeat_address(jsonb);
DROP TABLE sexton.heartbeats, sexton.heartbeat_addresses;
ALTER TABLE sexton.executions DROP heartbeat;
ALTER TABLE sexton.jobs DROP heartbeat;
