# Prints a whole file of at most HOSTEL_MOST bytes.
resolve "$HOSTEL_PATH" ''
require_readable
bytes=$(size <"$file")
test "$bytes" -le "$HOSTEL_MOST" || refuse large "$bytes"
printf 'ok\0%s\0' "$file"
cat <"$file" || exit 1
printf '\0done'
