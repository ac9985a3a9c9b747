#!/bin/sh
# Busy at the first try. Exit status 75 asks for another one later.
if [ "$SEXTON_ATTEMPT" -eq 1 ]; then
    echo 'the mail server is busy' >&2
    exit 75
fi
echo "sent, params: $(cat)"
