#!/bin/sh
# Prints the folder in memory for the data of the tests' servers, or nothing where memory is short: a run needs less than
# 2 GB, and never more than half of what is free.
set -eu
free_kb=$(df -Pk -t tmpfs /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
available_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null)
least_kb=$((8 * 1024 * 1024))
if [ "${free_kb:-0}" -ge "$least_kb" ] && [ "${available_kb:-0}" -ge "$least_kb" ] && [ -w /dev/shm ]; then
    echo /dev/shm
fi
