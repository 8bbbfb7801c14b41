# Lists the files that are searched, each name behind a `./` and before a NUL. Only plain files: nothing else ends for sure.
# HOSTEL_NAMES holds one pattern for names on each line, none if all names count. `passed_over` is what `find` leaves out.
newline='
'
if test "$(pwd -P)" = /; then top=1; else top=; fi

list() {
    if test "$kind" = file; then
        printf './%s\0' "$name"
    elif test "$lister" = rg; then
        list_rg
    else
        list_find
    fi
}

list_rg() {
    set -- "$@" --no-config --files --null
    # A type only narrows, where a glob would also bring back what is ignored.
    if test -n "$HOSTEL_NAMES"; then
        set -f
        IFS=$newline
        for pattern in $HOSTEL_NAMES; do set -- "$@" --type-add "hostel:$pattern"; done
        IFS=' '
        set +f
        set -- "$@" --type hostel
    fi
    test -z "$top" || set -- "$@" --glob '!/proc/' --glob '!/sys/' --glob '!/dev/'
    rg "$@" .
}

list_find() {
    set --
    if test -n "$HOSTEL_NAMES"; then
        set -f
        IFS=$newline
        for pattern in $HOSTEL_NAMES; do
            test $# -eq 0 || set -- "$@" -o
            set -- "$@" -name "$pattern"
        done
        IFS=' '
        set +f
        set -- '(' "$@" ')'
    fi
    set -- -prune -o -type f "$@" -print0
    passed_over "$@"
}

# Runs `find` with what is passed over, and then these words.
passed_over() {
    test -z "$top" || set -- -o -path ./proc -o -path ./sys -o -path ./dev ')' "$@"
    test -n "$top" || set -- ')' "$@"
    find . '(' -name '.?*' -o -type d '(' \
        -name node_modules -o -name bower_components -o -name __pycache__ \
        -o -name target -exec sh -c 'test -f "$1/CACHEDIR.TAG"' sh '{}' ';' \
        -o '(' -name venv -o -name env ')' -exec sh -c 'test -f "$1/pyvenv.cfg"' sh '{}' ';' \
        ')' "$@"
}
