# The one place where a program is given the pattern: options in one word, then files whose names begin with `./`, or `-`.
# It is text, since the shells that work on some hundred files each need it too.
match='
match() {
    options=$1
    shift
    case $HOSTEL_ENGINE in
    rg) rg --no-config --color=never $HOSTEL_RG $options -e "$HOSTEL_PATTERN" -- "$@" ;;
    perl) env LC_ALL="$HOSTEL_LOCALE" grep -P $options -e "$HOSTEL_PERL" -- "$@" ;;
    *) env LC_ALL="$HOSTEL_LOCALE" grep -E $HOSTEL_CASE $options -e "$HOSTEL_EXTENDED" -- "$@" ;;
    esac
}
'
eval "$match"
