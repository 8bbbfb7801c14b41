unset -f command printf uname id pwd
LC_ALL=C
export LC_ALL
printf '%s\0' "$(command uname -s 2>/dev/null) $(command uname -r 2>/dev/null)" "$(command id -un 2>/dev/null)" "$HOME" "$(command pwd)"
