# Prints matching lines. Each item of the input, before a NUL, is `SKIP,TAKE,NAME`: so many matches of that file after so many.
# For each: a NUL, whether it is binary, the line at which reading began, that of the first match (0: the first there is), and
# then lines as the program has printed them, none longer than some two thousand bytes.
items=$match'
for item do
    # Neighbours may match too, and busybox prints none behind the last match that it was asked for.
    skip=${item%%,*}
    rest=${item#*,}
    take=$((${rest%%,*} + 2 * HOSTEL_CONTEXT + 1))
    file=${rest#*,}
    options="$HOSTEL_TEXT -n -m $take"
    test "$HOSTEL_CONTEXT" -eq 0 || options="$options -C $HOSTEL_CONTEXT"
    if test $(($(head -c 8192 <"$file" | tr -dc "\000" | wc -c))) -gt 0; then
        printf "\0001 1 0\n"
    elif test "$skip" -eq 0; then
        printf "\0000 1 0\n"
        match "$options" "$file" | tr "\000" "\377" | cut -b 1-2100
    else
        first=$(match "$HOSTEL_TEXT -n -m $((skip + 1))" "$file" | tail -n 1 | cut -b 1-20)
        first=${first%%:*}
        case $first in "" | *[!0-9]*) continue ;; esac
        start=$((first > HOSTEL_CONTEXT ? first - HOSTEL_CONTEXT : 1))
        printf "\0000 %s %s\n" "$start" "$first"
        tail -n "+$start" -- "$file" | match "$options" - | tr "\000" "\377" | cut -b 1-2100
    fi
done
exit 0
'
HOSTEL_TEXT=-a
test "$HOSTEL_ENGINE" = rg || printf 'x\n' | grep -a -q x 2>/dev/null || HOSTEL_TEXT=
export HOSTEL_TEXT
{
    problems=$({ xargs -0 sh -c "$items" hostel; } 2>&1 >&3 | { head -c 8192; cat >/dev/null; })
} 3>&1
printf '\0\0%s\0' "$problems"
