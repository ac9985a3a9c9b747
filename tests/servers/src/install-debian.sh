# Installs the package named by the first argument so that nothing of it is started now: a policy file
# answers 101 ("not allowed") to every service start, and PostgreSQL creates no cluster. What was there
# before is put back, also after a failure or a signal. Runs as root.
set -eu
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.conf

restore() {
    for file in "$policy" "$clusters"; do
        if [ -e "$file.sexton-absent" ]; then rm -f "$file" "$file.sexton-absent"; fi
        if [ -e "$file.sexton-before" ]; then mv -f "$file.sexton-before" "$file"; fi
    done
}
# A script that was killed has left its marks: what they say is the state to come back to.
restore
trap restore EXIT
trap 'exit 130' HUP INT TERM

if [ -e "$policy" ]; then cp -p "$policy" "$policy.sexton-before"; else : >"$policy.sexton-absent"; fi
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

install() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" >&2; }

apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
if [ "$1" = postgresql ]; then
    # Its settings come with this package; the server's own package reads them.
    install postgresql-common
    cp -p "$clusters" "$clusters.sexton-before"
    echo 'create_main_cluster = false' >>"$clusters"
fi
install "$1"
