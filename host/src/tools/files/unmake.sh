# Removes an empty folder.
resolve "$HOSTEL_PATH" yes
test "$kind" != missing || refuse missing ''
test "$kind" = folder || refuse changed ''
why=$(rmdir -- "$file" 2>&1) || refuse failed "$why"
printf 'ok\0'
