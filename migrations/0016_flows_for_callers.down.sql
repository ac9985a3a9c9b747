DROP FUNCTION sexton.cancel_flow(uuid, text), sexton.flow(jsonb), sexton.flow_problems(jsonb), sexton.flow_order_problem(jsonb);
