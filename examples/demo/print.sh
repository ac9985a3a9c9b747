#!/bin/sh
# Fails until a file `paper` stands in the worker's working directory.
if [ ! -e paper ]; then
    echo 'the printer is out of paper' >&2
    exit 1
fi
echo "printed, params: $(cat)"
