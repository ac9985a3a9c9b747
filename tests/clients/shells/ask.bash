# Prints what bash offers after the words in the arguments; the last may be the beginning of a word.
source <(sexton completions bash)
read -r _ _ _ _ _ _ function _ < <(complete -p sexton | sed 's/.*-F /- - - - - - /')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
"$function" sexton "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
