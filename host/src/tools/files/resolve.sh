# Finds out which file a path means, and refuses what is protected: by its own name, and by each name that its links lead to.
#
# Sets `file`, which is absolute and whose folder has no links; `kind`: file, folder, special, missing or link; `folder`, the
# nearest that is there; `rest`, what is missing between that and the name, with a slash after each part; `slash` if one ends it.

# Goes to a folder and prints its path without links.
real() {
    cd -P -- "$1" && pwd -P && printf x
}

# Sets `bare` to what was printed, without its line break: one at the end of a name is part of it.
bare() {
    bare=${1%x}
    one_slash "${bare%"$newline"}"
}

# Sets `bare` to a path that does not begin with two slashes, which some shells keep.
one_slash() {
    bare=$1
    while :; do
        case $bare in
        //*) bare=${bare#/} ;;
        *) break ;;
        esac
    done
}

bare "$(real .)"
here=${bare%/}
home=${HOME:-}
bare "$(real "${home:-/}")"
real_home=$bare

# Sets `account` to the home of whoever runs this, whatever the session has made of `HOME`. HOSTEL_USER_HOME is that of Hostel's user.
account=
me=$(id -u 2>/dev/null)
while IFS=: read -r account_name account_pass account_id account_group account_about account_home account_shell; do
    if test -n "$me" && test "$account_id" = "$me"; then
        account=$account_home
        break
    fi
done 2>/dev/null </etc/passwd

# Refuses if a rule says so. A line of HOSTEL_RULES is `-` or `+` and a pattern, whose `~/` stands for the home and `@/` for a home
# of Hostel's; the first that fits counts. After a line `=` others are asked, whatever those before it say.
judge() {
    judged=$1
    set -- "$judged"
    for place in ${home:+"${home%/}" "${real_home%/}"} ${account:+"${account%/}"} ${HOSTEL_USER_HOME:+"${HOSTEL_USER_HOME%/}"}; do
        case $judged in
        "$place"/*) set -- "$@" "~/${judged#"$place"/}" ;;
        esac
        case $judged in
        "$place"/.hostel/*) set -- "$@" "@/${judged#"$place"/.hostel/}" ;;
        esac
    done
    for place in "$HOSTEL_OWN" "$HOSTEL_OWN_REAL"; do
        case $judged in
        "$place"/*) set -- "$@" "@/${judged#"$place"/}" ;;
        esac
    done
    set -f
    IFS=$newline
    for form do
        passes=
        for rule in $HOSTEL_RULES; do
            if test "$rule" = =; then
                passes=
                continue
            fi
            test -z "$passes" || continue
            case $form in
            # What is not quoted is a pattern.
            ${rule#?}) ;;
            *) continue ;;
            esac
            case $rule in
            -*) refuse protected '' "$judged" ;;
            esac
            passes=yes
        done
    done
    IFS=' 	
'
    set +f
}

# Refuses a file that is one of Hostel's own by another name.
judge_same() {
    for place in "$HOSTEL_OWN" "$home/.hostel"; do
        for own in config.yaml .env; do
            ! test "$file" -ef "$place/$own" || refuse protected '' "$file"
        done
    done
}

# Resolves $1. If $2 is not empty, a last link is not followed.
resolve() {
    file=$1
    case $file in
    /*)
        one_slash "$file"
        file=$bare
        ;;
    '~' | '~/'*)
        test -n "$home" || refuse homeless ''
        file=${home%/}${file#?}
        ;;
    *) file=$here/$file ;;
    esac
    slash=
    case $file in
    */) slash=yes ;;
    esac
    hops=0
    judge "$file"
    while :; do
        while :; do
            case $file in
            ?*/) file=${file%/} ;;
            *) break ;;
            esac
        done
        rest=
        if test -d "$file" && { test -z "$2" || ! test -L "$file"; }; then
            kind=folder
            folder=$file
            bare "$(real "$file")"
            test -z "$bare" || file=$bare
            judge "$file"
            return
        fi
        name=${file##*/}
        folder=${file%/*}
        until test -d "${folder:-/}"; do
            if test -e "$folder" || test -L "$folder"; then refuse notfolder '' "$folder"; fi
            case ${folder##*/} in
            '' | .) ;;
            *) rest=${folder##*/}/$rest ;;
            esac
            folder=${folder%/*}
        done
        bare "$(real "${folder:-/}")"
        test -n "$bare" || refuse unreadable 'Permission denied' "${folder:-/}"
        folder=$bare
        file=${folder%/}/$rest$name
        # What is not there has no parent either.
        case /$rest$name in
        */../* | */.. | */.) refuse missing '' ;;
        esac
        judge "$file"
        if test -n "$rest"; then
            kind=missing
        elif test -L "$file"; then
            kind=link
            test -z "$2" || return
            hops=$((hops + 1))
            test "$hops" -le 40 || refuse loop ''
            bare "$(readlink -- "$file" && printf x)"
            case $bare in
            '') refuse unreadable 'its link cannot be read' ;;
            /*) file=$bare ;;
            *) file=${folder%/}/$bare ;;
            esac
            continue
        elif test -f "$file"; then
            kind=file
            judge_same
        elif test -e "$file"; then
            kind=special
        else
            kind=missing
        fi
        test -z "$slash" || test "$kind" = missing || refuse notfolder ''
        return
    done
}

# Refuses a file that is no plain one.
require_plain() {
    case $kind in
    folder) refuse folder '' ;;
    special)
        if test -b "$file" || test -c "$file"; then refuse special 'a device'; fi
        test -p "$file" && refuse special 'a named pipe'
        test -S "$file" && refuse special 'a socket'
        refuse special 'no plain file'
        ;;
    esac
}

# Refuses a file that is not there, is no plain one, or cannot be read.
require_readable() {
    test "$kind" != missing || refuse missing ''
    require_plain
    why=$({ : <"$file"; } 2>&1) || refuse unreadable "$why"
}

# Refuses a file that is not in the state that HOSTEL_IS tells, if it tells one.
require_state() {
    test -n "$HOSTEL_IS" || return 0
    test -f "$file" && test "$(size <"$file")" = "$HOSTEL_IS_SIZE" || refuse changed ''
    state=$(sum <"$file")
    test -n "$state" || refuse program sha256sum
    test "$state" = "$HOSTEL_IS" || refuse changed ''
}
