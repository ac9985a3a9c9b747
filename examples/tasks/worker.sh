#!/bin/sh
# Works for a while, and fails at the first attempts, as the params say:
#   seconds     how long each attempt works
#   fail_times  how many attempts fail
# Exit status 0 means success, 75 asks for a retry, 65 means that no retry can help.
set -eu
params=$(cat)

# Prints the number called $1 in the params, or 0. Reads flat params only.
number() {
    found=$(printf '%s' "$params" | sed -n "s/.*\"$1\" *: *\([0-9][0-9]*\).*/\1/p")
    echo "${found:-0}"
}

seconds=$(number seconds)
fail_times=$(number fail_times)
echo "attempt $SEXTON_ATTEMPT of $SEXTON_JOB"

done=0
while [ "$done" -lt "$seconds" ]; do
    sleep 1
    done=$((done + 1))
    echo "worked for $done of $seconds s"
done

if [ "$SEXTON_ATTEMPT" -le "$fail_times" ]; then
    echo "the other system did not answer" >&2
    exit 75
fi
# The result, which people and programs can read later.
echo "{\"seconds\": $seconds}" >"$SEXTON_RESULT_FILE"
echo "done"
