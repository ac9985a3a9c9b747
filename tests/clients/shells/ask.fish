# Prints what fish offers after the words in the arguments, with its descriptions.
sexton completions fish | source
complete -C "$argv"
