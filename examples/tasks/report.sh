#!/bin/sh
# A report: reads its params (JSON) from standard input and prints what it would write.
set -eu
params=$(cat)
echo "report of $SEXTON_JOB for $SEXTON_SCHEDULED_FOR, target ${SEXTON_TARGET:-none}"
echo "params: $params"
# Writing a report twice under this name leaves one report.
echo "written as $SEXTON_IDEMPOTENCY_KEY"
