#!/bin/sh
# Sends every kind of request that the description allows, and many that it does not, with a tool of somebody else's; fails if an answer
# is no part of the description, or a fault of the server. Installs what it needs into the target folder. Exits with status 77 and a
# line that begins with "missing:" if Python's tools are missing.
#
# The file of the description may name rows that are there, as examples of parameters: requests about those come first.
#
#   tests/clients/openapi/fuzz.sh FILE http://ADDRESS TOKEN [EXAMPLES]
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/openapi
. "$root/scripts/languages.sh"
take_folder openapi-fuzz
use_python "$here/requirements.txt"
cd "$folder"
# It would revoke the token that it works with, whose name another answer has.
become python3 -m schemathesis.cli run "$1" --url "$2" --header "Authorization: Bearer $3" --exclude-operation-id revoke_token \
    --phases examples,coverage,fuzzing --max-examples "${4:-10}" --seed 1 --no-color \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance
