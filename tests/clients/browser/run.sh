#!/bin/sh
# Runs a story of the console in a real browser. Installs what it needs: packages from npm into the target folder, and Debian's Chromium,
# if there is none and this is root. Exits with status 77 and a line that begins with "missing:" if a browser cannot be had.
#
#   tests/clients/browser/run.sh STORY.js ADDRESS [ARGUMENT…]
#
# With PICTURES=FOLDER, stories leave pictures of what they saw there.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/clients/browser
. "$root/scripts/languages.sh"
take_folder browser
use_node "$here"
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v google-chrome || true)}
if [ -z "$CHROMIUM" ]; then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || missing 'a browser: install chromium, or name one by CHROMIUM'
    install_browser() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2; }
    install_browser || { apt-get update -qq >&2 && install_browser; } || missing 'chromium, as a package of Debian 12'
    CHROMIUM=$(command -v chromium) || missing 'chromium, although its package is installed'
fi
export CHROMIUM NODE_PATH="$folder/node_modules"
story=$1
shift
become node "$here/$story" "$@"
