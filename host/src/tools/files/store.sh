# Writes what comes in to a file: HOSTEL_SIZE bytes, and nothing if there are not as many.
#
# It comes into a file beside, which then takes the other's place, so that there is always one of them, whole. Where that would
# change more than the contents (what other names of the file see, its owner), or the folder takes no new file, the file is written
# in place, from contents that are on the disk by then.
resolve "$HOSTEL_PATH" ''
require_plain
test -z "$slash" || refuse folder ''

temp=
leave() {
    trap '' HUP INT TERM PIPE
    test -z "$temp" || rm -f -- "$temp"
    leave_folders
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# Makes a new empty file in the folder $1. Whatever has its name already is left alone.
make_temp() {
    count=0
    while test "$count" -lt 100; do
        count=$((count + 1))
        temp=${1%/}/.hostel-$$-$count
        if why=$({ set -C && : >"$temp"; } 2>&1); then return; fi
        if ! test -e "$temp" && ! test -L "$temp"; then break; fi
    done
    temp=
    return 1
}

# Takes in what is to be written.
fill() {
    why=$(cat 2>&1 >"$temp") || refuse failed "$why"
    got=$(size <"$temp")
    test "$got" -eq "$HOSTEL_SIZE" || refuse short "$got"
}

# Writes in place. What is longer than before comes first: if there is no room for it, all is as it was.
overwrite() {
    trap '' HUP INT TERM PIPE
    before=$(size <"$file")
    why=$(dd if=/dev/null of="$file" conv=notrunc count=0 2>&1) || refuse unwritable "${why%%"$newline"*}"
    if test "$HOSTEL_SIZE" -gt "$before"; then
        why=$(tail -c "+$((before + 1))" <"$temp" 2>&1 >>"$file") || {
            dd if=/dev/null of="$file" bs=1 seek="$before"
            refuse failed "$why"
        }
    fi
    why=$(dd if="$temp" of="$file" conv=notrunc bs=65536 2>&1) || refuse damaged "${why%%"$newline"*}"
    test "$HOSTEL_SIZE" -ge "$before" || dd if=/dev/null of="$file" bs=1 seek="$HOSTEL_SIZE" || refuse damaged ''
}

replace() {
    test -z "$HOSTEL_ABSENT" || refuse exists ''
    # Nothing is written by this, but it fails where the rights, the file system or an attribute forbid writing.
    why=$({ : >>"$file"; } 2>&1) || refuse unwritable "$why"
    set -- $(stat -c '%u %g %a %h' -- "$file")
    same="$1 $2 $3"
    in_place=
    test "${4:-2}" -eq 1 || in_place=yes
    mask=$(umask)
    umask 077
    if ! make_temp "$folder"; then
        in_place=yes
        make_temp "${TMPDIR:-/tmp}" || make_temp /tmp || refuse failed "$why"
    fi
    umask "$mask"
    fill
    if test -z "$in_place"; then
        # The first, which is GNU's, also takes along lists of rights and attributes.
        cp --attributes-only --preserve=all --no-preserve=timestamps -- "$file" "$temp" ||
            { chown "$1:$2" "$temp" && chmod "$3" "$temp"; }
        test "$(stat -c '%u %g %a' -- "$temp")" = "$same" || in_place=yes
    fi
    lock
    require_state
    if test -z "$in_place" && ! test -d "$file" && mv -f -- "$temp" "$file"; then
        temp=
    else
        overwrite
    fi
}

# Makes a file that is not there, with the rights that the umask leaves.
create() {
    test -z "$HOSTEL_IS" || refuse changed ''
    make_folders
    make_temp "$above" || refuse failed "$why"
    fill
    # A link never takes the place of anything, as a move may.
    test -n "$HOSTEL_ABSENT" && ln -- "$temp" "$file" && return
    if test -n "$HOSTEL_ABSENT" && { test -e "$file" || test -L "$file"; }; then refuse exists ''; fi
    why=$(mv -f -- "$temp" "$file" 2>&1) || refuse failed "$why"
    temp=
}

if test "$kind" = file; then replace; else create; fi
# While it is still locked: what somebody does to it later is no fault.
summed=$(sum <"$file")
test "$(size <"$file")" -eq "$HOSTEL_SIZE" && test "${summed:-$HOSTEL_SUM}" = "$HOSTEL_SUM" || refuse garbled ''
printf 'ok\0%s\0%s\0' "$kind" "$file"
each_made print_made
made=$folder
