# Runs a script as a child of its own, and speaks of it with Hostel.
#
# Hostel reads frames on our standard output (`frames.rs` says what they are) and sends answers to our standard input. Whatever ends one
# of the two ends the script. `token`, `name` and `sizes` are set by whoever reads this text. Several processes of ours write frames:
# each is one line below 4096 bytes, which a pipe takes whole.

# The largest call.
largest=8388608
too_large='{"error": "the call is larger than 8 MiB: write large files in pieces"}'
# Between SIGTERM and SIGKILL, in seconds.
grace=0.5
# Where lines of base64 have their usual length, there are more of them.
columns=(-w 3000)
base64 -w 3000 </dev/null >/dev/null 2>&1 || columns=()

frame() {
    printf '%s %s %s %s\n' "$token" "$1" "$2" "$3"
}

say() {
    frame "$1" 0 "$(printf '%s' "$2" | base64 | tr -d '\n')"
}

fail() {
    say f "$1"
    [ -z "${folder-}" ] || rm -rf "$folder"
    exit 1
}

# Takes so many bytes of our standard input.
part() {
    if [ "$1" -gt 0 ]; then
        dd bs="$1" count=1 iflag=fullblock 2>/dev/null >"$2" || fail "\`$2\` cannot be written"
    else
        : >"$2"
    fi
}

# Whether the script sees a variable.
keeps() {
    local part
    for part in "${hidden[@]}"; do
        case ${1^^} in *"$part"*) return 1 ;; esac
    done
    for part in "${exact[@]}"; do
        [ "$1" != "$part" ] || return 0
    done
    for part in "${prefixes[@]}"; do
        case $1 in "$part"*) return 0 ;; esac
    done
    return 1
}

# Leaves only what the script sees among the options `-u` for `env`: a name is no secret, unlike its value.
unseen() {
    local entry name
    without=()
    while IFS= read -r -d '' entry; do
        name=${entry%%=*}
        [ -z "$name" ] || keeps "$name" || without+=(-u "$name")
    done < <(cat /proc/$$/environ 2>/dev/null; printf '%s=\0' $(compgen -e))
}

# Passes on one stream of the script. What is printed by its own children after its end is read by nobody, and does them no harm.
pass_on() {
    local raw=$folder/$1.raw text=$folder/$1.text line last=
    trap '' TERM INT HUP
    while dd bs=65536 count=1 2>/dev/null >"$raw" && [ -s "$raw" ]; do
        base64 "${columns[@]}" <"$raw" >"$text"
        while IFS= read -r line || [ -n "$line" ]; do
            frame "$1" 0 "$line"
        done <"$text"
        # Once the script has ended, all that it has printed stands in the pipe, and is taken at once.
        [ -z "$last" ] || break
        if [ -e "$folder/over" ]; then
            read -r -t 0 || break
            last=yes
        fi
    done
    echo >&4
    trap - TERM INT HUP
    # No command of anybody's.
    HOSTEL_CALL=reader exec cat >/dev/null 2>&1 3>&- 4>&-
}

# Tells Hostel of the calls that the script makes.
tell_calls() {
    local id call line before
    while IFS= read -r id <&3; do
        call=$folder/calls/$id
        if [ "$(($(wc -c <"$call/request")))" -gt "$largest" ]; then
            answer "$id" 1 "$(printf '%s' "$too_large" | base64)"
            continue
        fi
        base64 "${columns[@]}" <"$call/request" >"$call/text"
        before=
        while IFS= read -r line || [ -n "$line" ]; do
            [ -z "$before" ] || frame c "$id+" "$before"
            before=$line
        done <"$call/text"
        frame c "$id" "$before"
    done
}

# Gives a call its answer. Whoever made it holds `ready` open, unless it has ended.
answer() {
    { printf '%s' "$3" | base64 -d && echo; } >"$folder/calls/$1/answer" && printf '%s\n' "$2" 1<>"$folder/calls/$1/ready"
} 2>/dev/null

# Hears the answers: the token, `a`, the call, whether it failed, and what was answered.
hear() {
    local mark kind id failed data
    while IFS=' ' read -r mark kind id failed data; do
        case $mark/$kind/$id in
            "$token"/a/*[!A-Za-z0-9]*) ;;
            "$token"/a/?*) answer "$id" "$failed" "$data" ;;
        esac
    done
    # Nobody is there any more.
    kill -TERM "$$"
}

end() {
    kill "-$1" -- "-$child" 2>/dev/null
}

mask=$(umask)
umask 077
place=${TMPDIR:-/tmp}
# A session's `TMPDIR` may lead nowhere.
test -d "$place" && test -w "$place" || place=/tmp
why=$(mkdir -- "$place/$name" 2>&1) || fail "$why"
folder=$place/$name
read -r rule_size tools_size script_size <<<"$sizes"
part "$rule_size" "$folder/rule"
part "$tools_size" "$folder/tools.sh"
part "$script_size" "$folder/script.sh"
{
    read -r -a hidden
    read -r -a prefixes
    read -r -a exact
} <"$folder/rule"
mkdir "$folder/calls" && mkfifo "$folder/o" "$folder/e" "$folder/news" "$folder/done" || fail "\`$folder\` cannot be filled"
exec 3<>"$folder/news" 4<>"$folder/done"
unseen

stopped=
trap 'stopped=" stopped"' TERM INT HUP
say b ''
pass_on o <"$folder/o" &
pass_on e <"$folder/e" &
tell_calls </dev/null 4>&- &
tell=$!
# Behind `<&0`: what is put in the background would read nothing.
hear <&0 3>&- 4>&- &
hear=$!

umask "$mask"
# A process group of its own.
set -m
env "${without[@]}" BASH_ENV="$folder/tools.sh" "$BASH" "$folder/script.sh" </dev/null >"$folder/o" 2>"$folder/e" 3>&- 4>&- &
child=$!
set +m
while wait "$child"; [ -n "$stopped" ] && kill -0 "$child" 2>/dev/null; do
    # The waiting ends with a signal to us as well.
    [ -z "${killer-}" ] || continue
    end TERM
    end CONT
    (sleep "$grace" && end KILL) </dev/null >/dev/null 2>&1 3>&- 4>&- &
    killer=$!
done
wait "$child"
code=$?
[ -z "$stopped" ] || end KILL

# Wakes who still waits for output of the script, and tells them that there is none.
: >"$folder/over"
printf '\0' 1<>"$folder/o"
printf '\0' 1<>"$folder/e"
read -r _ <&4
read -r _ <&4
kill "$tell" "$hear" ${killer-} 2>/dev/null
rm -rf "$folder"
say x "$code$stopped"
exit 0
