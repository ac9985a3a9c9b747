#!/bin/sh
# Pings with a client that was written for Healthchecks. Installs what it needs into the target folder. Exits with status 77 and a line that
# begins with "missing:" if Python's tools are missing.
#
#   tests/clients/healthchecks/run.sh http://ADDRESS/ping/ KEY ID
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/healthchecks
. "$root/scripts/languages.sh"
take_folder healthchecks
use_python "$here/requirements.txt"
become python3 "$here/pings.py" "$@"
