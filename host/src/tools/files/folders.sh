# Makes the folders that are missing above a file. `made` is the lowest that was made; all between that and `folder` were.
made=$folder

make_folders() {
    made=$folder
    above=$folder
    parts=$rest
    while test -n "$parts"; do
        part=${parts%%/*}
        parts=${parts#*/}
        test -n "$part" || continue
        above=${above%/}/$part
        if why=$(mkdir -- "$above" 2>&1); then
            made=$above
        else
            test -d "$above" || refuse failed "$why" "$above"
        fi
    done
}

# Calls $1 with each folder that was made, the lowest first.
each_made() {
    each=$made
    until test "$each" = "$folder" || test -z "$each"; do
        "$1" "$each"
        each=${each%/*}
    done
}

unmake() {
    rmdir -- "$1"
}

print_made() {
    printf '%s\0' "$1"
}

# What was made is left behind only if all goes well.
leave_folders() {
    each_made unmake
}

# Locks the file until the end of this program, so that no other of ours changes it between a comparison and what is then done.
# Where that cannot be, or somebody else holds it for long, it goes without.
lock() {
    test -f "$file" && command -v flock >/dev/null || return 0
    if command exec 9>>"$file" || command exec 9<"$file"; then
        flock -w 2 9 || flock -n 9
    fi
}
