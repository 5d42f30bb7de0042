# Sourced: what an object takes of flash and RAM, in bytes, as a linker's map has it, with what libgcc adds.

# of_map <map> <object> <which sections, a pattern>
of_map() {
    awk -v object="$2" -v sections="$3" '
        /^Linker script and memory map/ { on = 1 }
        !on { next }
        NF == 1 && /^ \.[^ ]+$/ { name = $1; next }                # a long name has a line of its own
        /^ \.[^ ]+ / { name = $1; sub(/^ [^ ]+/, "") }
        /^ *0x[0-9a-f]+ +0x[0-9a-f]+ / && name ~ sections && ($NF == object || $NF ~ /libgcc\.a\(/) { print substr($2, 3) }
        { name = "" }' "$1" | while read -r hex; do echo $((16#$hex)); done | awk '{ n += $1 } END { print n + 0 }'
}
flash_of() { of_map "$1" "$2" '^[.](text|rodata|srodata|more|data|sdata|ARM[.]ex)'; }
ram_of() { of_map "$1" "$2" '^[.](data|sdata|bss|sbss)'; }
