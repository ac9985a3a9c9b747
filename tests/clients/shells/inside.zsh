# Sourced by the zsh that completes.
PROMPT= RPROMPT=
autoload -Uz compinit
compinit -u -D
source <(sexton completions zsh)
bindkey '^I' complete-word
comppostfuncs=(finished)
finished() { print; print DONE }
compadd() {
    # Called to fill arrays only.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a matches
    builtin compadd -A matches "$@"
    print
    (( $#matches )) && print -rl -- MATCH:$^matches
    builtin compadd "$@"
}
print READY
