# A function that was exported into this shell must not stand in for a program. `unset` is found before functions in `sh`.
unset -f cat cd command cut env eval find grep head ls printf pwd readlink rg sh stat tail test tr wc xargs 2>/dev/null
unset CDPATH GREP_OPTIONS GREP_COLOR GREP_COLORS RIPGREP_CONFIG_PATH 2>/dev/null
IFS=' 	
'
LC_ALL=C
export LC_ALL

# Ends the program: why, as a word, and what a program said.
refuse() {
    printf 'no\0%s\0%s\0' "$1" "$2"
    exit 0
}

# Returns whether there is a program. `busybox sh` has some in itself.
has() {
    command -v "$1" >/dev/null 2>&1
}
