#!/bin/sh
# Prints where `caddy` and `nginx` are, one a line. Where they are not installed, it unpacks Debian's packages into the target
# folder, the first time; nothing is installed. Status 77 where that cannot be done.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/languages.sh"

if command -v caddy >/dev/null && command -v nginx >/dev/null; then
    command -v caddy
    command -v nginx
    exit
fi
take_folder tools/proxies
use_packages 'caddy nginx' 'Caddy and nginx'
nginx=$folder/packages/usr/sbin/nginx
"$nginx" -v 2>/dev/null || missing 'what nginx is linked with: libpcre2-8-0, libssl3, zlib1g, libcrypt1'
echo "$folder/packages/usr/bin/caddy"
echo "$nginx"
