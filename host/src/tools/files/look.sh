# Prints what there is to tell of a file for reading it: where it is, its size, how it begins, and some of its lines or all of it.
# Nothing of a large file is held: lines are cut as they come by.
resolve "$HOSTEL_PATH" ''
if test "$kind" = missing; then
    printf 'ok\0missing\0%s\0%s\0%s\0' "$file" "$folder" "$rest$name"
    cd -P -- "$folder" || exit 0
    count=0
    for name in * .[!.]*; do
        test -e "$name" || continue
        printf '%s\0' "$name"
        count=$((count + 1))
        test "$count" -lt 5000 || break
    done
    exit 0
fi
require_readable
bytes=$(size <"$file")
state=
test "$bytes" -gt "$HOSTEL_MOST" || state=$(sum <"$file")
test -n "$state" || state="times $(stat -c '%s %i %y %z' -- "$file")"
printf 'ok\0file\0%s\0%s\0%s\0' "$file" "$bytes" "$state"
head -c 1000 <"$file" | od -v -b
printf '\0'

# What is no text, or text in an encoding that has other line ends than ASCII, is printed whole.
whole=
case $file in
*.[iI][pP][yY][nN][bB] | *.[dD][oO][cC][xX] | *.[xX][lL][sS][xX]) whole=yes ;;
esac
case $(head -c 2 <"$file" | tr -dc '\376\377' | tr '\376\377' 'ab') in
ab | ba) whole=yes ;;
esac
if test -n "$whole" && test "$bytes" -le "$HOSTEL_MOST"; then
    printf 'whole\0'
    cat <"$file" || exit 1
    printf '\0done'
    exit 0
fi
if test "$(head -c 1000 <"$file" | tr -dc '\000' | size)" -gt 0; then
    printf 'binary\0'
    exit 0
fi
printf 'lines\0'
# No more is taken than some programs can hold as one line. From the first line on there is nothing to pass over.
if test "$HOSTEL_OFFSET" -eq 1; then
    head -n "$HOSTEL_LIMIT" <"$file"
else
    tail -n "+$HOSTEL_OFFSET" <"$file" | head -n "$HOSTEL_LIMIT"
fi | head -c "$HOSTEL_TAKEN" | cut -b "1-$HOSTEL_LONGEST" | tr '\000' '\377' | head -c "$HOSTEL_ENOUGH"
printf '\0'
# Last, since it can take long.
lines=$(($(wc -l <"$file")))
test "$(tail -c 1 <"$file" | tr -d '\n' | size)" -eq 0 || lines=$((lines + 1))
printf '%s\0' "$lines"
