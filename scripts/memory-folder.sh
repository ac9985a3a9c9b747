#!/bin/sh
# Prints the folder in memory for the data of the tests' servers, or nothing where memory is short. A run needs less than
# 2 GB; it gets the folder where four times as much memory is available and the folder may hold twice as much.
set -eu
gb=$((1024 * 1024))
folder_kb=$(df -Pk -t tmpfs /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
available_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null)
if [ "${available_kb:-0}" -ge $((8 * gb)) ] && [ "${folder_kb:-0}" -ge $((4 * gb)) ] && [ -w /dev/shm ]; then
    echo /dev/shm
fi
