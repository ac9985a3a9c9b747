# Prints what zsh offers after the words in the arguments: its line editor runs on a terminal of its own, and compadd,
# by which completion functions add their matches, prints them.
zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
zpty -w shell "source ${0:A:h}/inside.zsh"
zpty -m -r shell seen '*READY*' || exit 1
zpty -n -w shell "$*"$'\t'
while zpty -r shell line; do
    line=${line%$'\n'} line=${line%$'\r'}
    case $line in
    *MATCH:*) print -r -- "${line#*MATCH:}" ;;
    *DONE*) break ;;
    esac
done
zpty -d shell
