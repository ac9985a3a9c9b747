# Ends a platform's programs when the harness is gone, however it went. Standard input is a pipe that
# only the harness holds open: the end of file is the news. Argument: the platform's folder.
trap '' HUP INT TERM
while read -r _; do :; done

folder=$1
round=0
while [ "$round" -lt 100 ]; do
    found=no
    for process in /proc/[0-9]*; do
        [ "$process/cwd" -ef "$folder/run" ] || continue
        found=yes
        # A task's guard sees its worker die and ends the task, also one that has moved elsewhere:
        # it gets two seconds for that.
        if [ "$round" -lt 20 ] && read -r name < "$process/comm" && [ "$name" = sexton-guard ]; then
            continue
        fi
        kill -s KILL "${process#/proc/}"
    done
    [ "$found" = yes ] || break
    round=$((round + 1))
    sleep 0.1
done
rm -rf -- "$folder"
