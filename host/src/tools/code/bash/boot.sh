IFS=" " read -r token name size sizes || exit 1
launcher=$(dd bs="$size" count=1 iflag=fullblock 2>/dev/null) && [ -n "$launcher" ] || exit 1
eval "$launcher"
