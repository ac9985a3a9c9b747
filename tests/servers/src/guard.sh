# Stops a private server when its owner is gone, however the owner went. Its standard input is a pipe
# that only the owner holds open: the end of file is the news. Arguments: the server's folder, the
# signal that makes it end at once, and, for containers, the command that removes them.
trap '' HUP INT TERM
while read -r _; do :; done

folder=$1 signal=$2
shift 2
[ $# -eq 0 ] || "$@"

ours() {
    set --
    for process in /proc/[0-9]*; do
        [ "$process/cwd" -ef "$folder/run" ] && set -- "$@" "${process#/proc/}"
    done
    echo "$@"
}

# Two seconds to end as asked (PostgreSQL gives its shared memory back), then the hard way.
round=0
while pids=$(ours) && [ -n "$pids" ] && [ "$round" -lt 100 ]; do
    [ "$round" -ne 20 ] || signal=KILL
    kill -s "$signal" $pids
    kill -s CONT $pids
    round=$((round + 1))
    sleep 0.1
done
rm -rf -- "$folder"
