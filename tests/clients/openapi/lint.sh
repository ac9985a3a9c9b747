#!/bin/sh
# Checks the description of the API by the rules of a tool of somebody else's. Installs it into the target folder. Exits with status 77
# and a line that begins with "missing:" if Node.js is missing.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/openapi
. "$root/scripts/languages.sh"
take_folder openapi-lint
use_node "$here"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
become "$folder/node_modules/.bin/redocly" lint "$root/server/openapi.json" --config "$here/redocly.yaml"
