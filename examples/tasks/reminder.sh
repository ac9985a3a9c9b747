#!/bin/sh
# A reminder: says whom it would remind. Delivery that must not happen twice uses the key, which
# stays the same over retries and requeues.
set -eu
params=$(cat)
case $params in
    *'"to"'*) echo "reminding with $params, key $SEXTON_IDEMPOTENCY_KEY" ;;
    *)
        echo "the params name nobody in \"to\"" >&2
        exit 65
        ;;
esac
