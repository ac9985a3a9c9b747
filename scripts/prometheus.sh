#!/bin/sh
# Prints the folder with `prometheus` and `promtool`. Where they are not installed, it unpacks Debian's package into the target
# folder, the first time; nothing is installed. Status 77 where that cannot be done.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/languages.sh"

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(command -v prometheus)"
    exit
fi
take_folder tools/prometheus
use_packages 'prometheus' 'Prometheus'
echo "$folder/packages/usr/bin"
