#!/bin/sh
# A report: reads its params (JSON) from standard input and says what it would write.
set -eu
params=$(cat)
echo "report of $SEXTON_JOB for $SEXTON_SCHEDULED_FOR, target ${SEXTON_TARGET:-none}"
echo "params: $params"
# A report that is written twice under this name is written once.
echo "written as $SEXTON_IDEMPOTENCY_KEY"
