# Removes the folder HOSTEL_NAME of a launcher that was killed, wherever it may have made it.
for place in "$TMPDIR" "$TEMP" "$TMP" /tmp /var/tmp; do
    case $place in
    /*) rm -rf -- "${place%/}/$HOSTEL_NAME" ;;
    esac
done
