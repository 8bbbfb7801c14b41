# Goes to the folder that is searched, or to the one in which the file lies. HOSTEL_ROOT is where.
root=$HOSTEL_ROOT
case $root in
'~') root=${HOME:-/} ;;
'~/'*) root=${HOME:-}/${root#??} ;;
esac
# A name is never an option, nor `cd`'s word for where one was before.
case $root in
/*) ;;
*) root=./$root ;;
esac

if test -d "$root"; then
    kind=folder
    if ! test -r "$root" || ! test -x "$root"; then refuse unreadable 'Permission denied'; fi
    cd -P -- "$root" 2>/dev/null || refuse unreadable ''
elif test -f "$root"; then
    kind=file
    test -r "$root" || refuse unreadable 'Permission denied'
    name=${root##*/}
    folder=${root%/*}
    cd -P -- "${folder:-/}" 2>/dev/null || refuse unreadable ''
elif test -e "$root"; then
    refuse special ''
elif test -L "$root"; then
    refuse dangling ''
else
    why=$(ls -d -- "$root" 2>&1)
    refuse missing "$why"
fi

printf 'ok\0%s\0' "$kind"
pwd -P
printf '\0'
# Which file it is if it is a link. What `readlink` cannot say is where it lies by its own name.
if test "$kind" = file; then
    readlink -f -- "./$name" 2>/dev/null || { pwd -P && printf '/%s\n' "$name"; }
fi
printf '\0%s\0' "${HOME:-}"
(cd -P -- "${HOME:-/nonexistent}" 2>/dev/null && pwd -P)
printf '\0'
