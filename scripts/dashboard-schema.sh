#!/bin/sh
# Checks dashboards against Grafana's types: each file of the arguments, or those of deploy/grafana. Status 77 where the types
# cannot be fetched.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/languages.sh"

schema=$root/deploy/grafana/schema
[ $# -gt 0 ] || set -- "$root/deploy/grafana/operations.json" "$root/deploy/grafana/job.json"
take_folder tools/dashboard-schema
use_node "$schema"
cp "$schema/types.ts" "$folder"
{
    echo 'import type { Dashboard } from "./types";'
    number=0
    for file; do
        number=$((number + 1))
        printf 'export const dashboard%d: Dashboard = %s;\n' "$number" "$(cat "$file")"
    done
} >"$folder/dashboards.ts"
cd "$folder"
become node node_modules/typescript/bin/tsc --noEmit --strict --skipLibCheck --module nodenext --moduleResolution nodenext dashboards.ts
