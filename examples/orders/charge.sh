#!/bin/sh
# Stands for the charge of an order: its result are the params.
set -eu
params=$(cat)
echo "charged: $params"
printf '{"charged": %s}' "$params" >"$SEXTON_RESULT_FILE"
