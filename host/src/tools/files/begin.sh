# A function that was exported into this shell must not stand in for a program. `unset` is found before functions in `sh`.
unset -f cat cd chmod chown command cp cut dd echo head ln mkdir mv od openssl printf pwd python3 readlink rm rmdir sha256sum \
    shasum stat tail test tr umask wc 2>/dev/null
unset CDPATH 2>/dev/null
newline='
'
IFS=' 	
'
LC_ALL=C
export LC_ALL
# What programs say is told where it is asked for, and never stands among what is printed.
exec 2>/dev/null

# Ends the program: why, as a word, what a program or the shell said of it, which file is meant, and what the caller calls it.
about=$HOSTEL_PATH
refuse() {
    printf 'no\0%s\0%s\0%s\0%s\0' "$1" "$2" "${3:-$file}" "$about"
    exit 0
}

# Prints how many bytes come in.
size() {
    echo $(($(wc -c)))
}

# Prints the SHA-256 of what comes in, or nothing if no program for it is there.
sum() {
    for program in sha256sum 'shasum -a 256' 'openssl dgst -sha256 -r'; do
        # Not quoted, since options stand beside the name.
        command -v ${program%% *} >/dev/null || continue
        summed=$($program)
        echo "${summed%% *}"
        return
    done
}
