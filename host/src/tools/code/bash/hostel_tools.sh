# The tools of Hostel, for a script that `execute_code` runs.
#
# `hostel_tools NAME JSON` calls the tool NAME with the arguments JSON, or with what it reads if JSON is `-`. It prints the result, one
# JSON object, and returns 1 if that has an `error`.
_hostel_folder=${BASH_ENV%/*}
# Programs that the script starts are none of ours.
unset BASH_ENV
readonly _hostel_folder

hostel_tools() (
    unset -f cat mkfifo mktemp read rm unset
    IFS=' '
    if [ $# -lt 1 ] || [ $# -gt 2 ]; then
        echo 'usage: hostel_tools NAME [JSON | -]' >&2
        exit 2
    fi
    call=$(mktemp -d "$_hostel_folder/calls/XXXXXXXXXX" 2>/dev/null) && mkfifo "$call/ready" && exec 9<>"$call/ready" || {
        echo '{"error": "the tool was not called, as the script is at its end"}'
        exit 1
    }
    {
        printf '%s\n' "$1"
        case ${2-} in
            '') echo '{}' ;;
            -) cat ;;
            *) printf '%s' "$2" ;;
        esac
    } >"$call/request"
    printf '%s\n' "${call##*/}" >"$_hostel_folder/news"
    IFS= read -r failed <&9
    cat "$call/answer"
    rm -rf "$call"
    exit "$failed"
)
