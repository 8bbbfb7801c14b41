# Prints a whole file of at most HOSTEL_MOST bytes: where it is, the name by which it was called there, and if it has several names, which
# of all files it is.
resolve "$HOSTEL_PATH" ''
require_readable
bytes=$(size <"$file")
test "$bytes" -le "$HOSTEL_MOST" || refuse large "$bytes"
called=$file
if test "$hops" -gt 0; then
    real_file=$file
    resolve "$HOSTEL_PATH" yes
    called=$file
    file=$real_file
fi
which=
case $(stat -c %h -- "$file" 2>/dev/null) in
'' | 1) ;;
*) which=$(stat -c %d:%i -- "$file" 2>/dev/null) ;;
esac
printf 'ok\0%s\0%s\0%s\0' "$file" "$called" "$which"
cat <"$file" || exit 1
printf '\0done'
