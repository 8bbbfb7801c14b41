# Finds out which program searches, and whether it understands the pattern.
lister=find
case $(has rg && rg --version 2>/dev/null) in
ripgrep*) lister=rg ;;
esac
HOSTEL_ENGINE=$lister
HOSTEL_RG=
# In UTF-8 `.` is a character; bytes that are none are no reason for GNU grep to see a binary file when it is told so.
HOSTEL_LOCALE=C
if test -n "$HOSTEL_CONTENT" && has grep; then
    test "$(printf '\303\244\n' | env LC_ALL=C.UTF-8 grep -c '^.$' 2>/dev/null)" = 1 && HOSTEL_LOCALE=C.UTF-8
fi
export HOSTEL_ENGINE HOSTEL_RG HOSTEL_LOCALE

# Returns whether the engine takes the pattern. Why the first one did not is what the caller hears.
said=
takes() {
    HOSTEL_ENGINE=$1
    HOSTEL_RG=$2
    # Of no line at all, busybox would say nothing.
    why=$(printf 'x\n' | match -q - 2>&1)
    case $? in
    0 | 1) return 0 ;;
    esac
    test -n "$said" || said=$1:$why
    return 1
}

knows_perl() {
    has grep && printf 'x\n' | grep -qP '^x$' 2>/dev/null
}

knows_words() {
    test "$(printf 'ab\nb\n' | grep -cE '\bb' 2>/dev/null)" = 1
}

if test -n "$HOSTEL_CONTENT"; then
    # What its own engine does not understand, ripgrep gives to another one, which fails on every file that is no UTF-8.
    if test "$lister" = rg && takes rg ''; then
        :
    elif knows_perl && takes perl ''; then
        :
    elif test "$lister" = rg && takes rg --engine=auto; then
        :
    elif knows_perl || test "$lister" = rg; then
        refuse pattern "$said"
    elif ! has grep; then
        refuse program grep
    elif test -n "$HOSTEL_UNTRANSLATED"; then
        refuse translation "$HOSTEL_UNTRANSLATED"
    elif test -n "$HOSTEL_WORDS" && ! knows_words; then
        refuse translation '`\b`'
    else
        takes extended '' || refuse pattern "$said"
    fi
fi
has xargs || refuse program xargs
test "$kind" = file || test "$lister" = rg || has find || refuse program find
printf '%s\0%s\0%s\0' "$HOSTEL_ENGINE" "$HOSTEL_RG" "$HOSTEL_LOCALE"
