#!/bin/sh
# Works for six seconds.
for part in 1 2 3 4 5 6; do
    echo "part $part of 6"
    sleep 1
done
