SET LOCAL lock_timeout = '3s';

DROP TRIGGER delete_members ON sexton.executions;
DROP TRIGGER settle_member ON sexton.executions;
DROP TRIGGER begin_flow ON sexton.executions;
DROP FUNCTION sexton.delete_members(), sexton.settle_member(), sexton.lock_flow(uuid), sexton.end_flow(uuid, timestamptz),
    sexton.wait_for_flow_of(uuid), sexton.begin_flow(),
    sexton.free_members(uuid[], timestamptz), sexton.follow_ends(uuid, uuid[]), sexton.make_flow_members(integer), sexton.make_members(uuid),
    sexton.give_up_members(uuid, text), sexton.follow_first(uuid), sexton.filled_member(text, text, jsonb),
    sexton.cancel_members(uuid, timestamptz),
    sexton.add_flow_members(uuid, uuid, jsonb, text, timestamptz, timestamptz), sexton.flow_verdict(text, bigint, bigint);
DROP TABLE sexton.flow_edges, sexton.flow_members, sexton.flows;
ALTER TABLE sexton.jobs DROP flow;
ALTER TABLE sexton.executions DROP flow_id;
