#!/bin/sh
# Fails at the first attempt. Exit status 75 asks for a retry.
if [ "$SEXTON_ATTEMPT" -eq 1 ]; then
    echo 'the mail server is busy' >&2
    exit 75
fi
echo "sent, params: $(cat)"
