#!/bin/sh
# Runs the cron that was unpacked into a folder, with one crontab and nothing else: `cron.sh CRONTAB FOLDER`, as root in
# a mount namespace of its own. Its lock, its spool and its settings are seen by nobody else.
set -eu
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/spool
mount -t overlay overlay -o "lowerdir=$2/etc:/etc" /etc
mount -t tmpfs tmpfs /etc/cron.d
mount --bind /dev/null /etc/crontab
mkdir -p /var/spool/cron/crontabs
install -m 600 "$1" /var/spool/cron/crontabs/root
exec "$2/usr/sbin/cron" -f
