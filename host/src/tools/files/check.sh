# Looks whether something can be done with a file, as HOSTEL_NEED says, and changes nothing: `write` that it gets other contents,
# `entry` that it is removed or renamed, `make` that it is made, `name` that another gets its name. With HOSTEL_FREED it may be there.
case $HOSTEL_NEED in
entry | name) resolve "$HOSTEL_PATH" yes ;;
*) resolve "$HOSTEL_PATH" '' ;;
esac
require_plain
test -z "$slash" || refuse folder ''
case $HOSTEL_NEED in
write | entry)
    test "$kind" != missing || refuse changed ''
    require_state
    ;;
*) test "$kind" = missing || test -n "$HOSTEL_FREED" || refuse exists '' ;;
esac
if test "$HOSTEL_NEED" = write; then
    # Nothing is written by this, but it fails where the rights, the file system or an attribute forbid writing.
    why=$({ : >>"$file"; } 2>&1) || refuse unwritable "$why"
else
    test -w "$folder" && test -x "$folder" ||
        refuse unwritable 'its rights or its file system do not let files come and go' "$folder"
fi
printf 'ok\0%s\0' "$file"
