#!/bin/sh
# Work of a given length that fails a given number of times.
#   seconds     how long it works
#   fail_times  the first so many attempts fail
# Exit 0 is success, 75 asks for a retry, 65 says that no retry can help.
set -eu
params=$(cat)

# The number called $1 in the params; 0 if there is none. Good enough for flat params.
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
# What it has done, for people and programs to look up.
echo "{\"seconds\": $seconds}" >"$SEXTON_RESULT_FILE"
echo "done"
