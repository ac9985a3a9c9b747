-- How much there is to gain: without the indexes whose entries come and go with an execution's state, and with nothing in
-- their place. A platform could not work so.
DROP INDEX sexton.executions_unpublished, sexton.executions_unpublished_nominal, sexton.executions_running,
    sexton.executions_waiting, sexton.executions_active, sexton.executions_waiters, sexton.executions_failed, sexton.executions_ended;
