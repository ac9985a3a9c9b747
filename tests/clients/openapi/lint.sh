#!/bin/sh
# Checks the description of the API by the rules of two tools that others wrote. Installs them into the target folder. Exits with status 77
# and a line that begins with "missing:" if Node.js is missing.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/openapi
. "$root/scripts/languages.sh"
take_folder openapi-lint
use_node "$here"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
"$folder/node_modules/.bin/spectral" lint "$root/server/openapi.json" --ruleset "$here/spectral.yaml" --fail-severity warn
become "$folder/node_modules/.bin/redocly" lint "$root/server/openapi.json" --config "$here/redocly.yaml"
