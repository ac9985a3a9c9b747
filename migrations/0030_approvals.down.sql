DROP TABLE sexton.approvals;
DROP TABLE sexton.approval_requests;
DROP TABLE sexton.approval_rules;
