# Removes a file, or gives it another name, HOSTEL_TO. A link is removed or renamed itself, not what it leads to.
resolve "$HOSTEL_PATH" yes
test "$kind" != missing || refuse missing ''
require_plain
lock
require_state
if test -z "$HOSTEL_TO"; then
    why=$(rm -f -- "$file" 2>&1) || refuse failed "$why"
    printf 'ok\0%s\0' "$file"
    exit 0
fi

from=$file
from_kind=$kind
from_folder=$folder
about=$HOSTEL_TO
resolve "$HOSTEL_TO" yes
test "$kind" = missing || refuse exists ''
test -z "$slash" || refuse folder ''
if test "$from_kind" = link && test "$folder/$rest" != "$from_folder/"; then
    case $(readlink -- "$from") in
    /*) ;;
    *) refuse link '' "$from" ;;
    esac
fi
trap leave_folders EXIT
make_folders
why=$(mv -f -- "$from" "$file" 2>&1) || refuse failed "$why"
printf 'ok\0%s\0%s\0' "$from" "$file"
each_made print_made
made=$folder
