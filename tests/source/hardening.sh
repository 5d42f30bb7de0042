#!/usr/bin/env bash
# Every ELF file that `meson install` puts into a prefix: its tables are read-only after start (full RELRO), its
# stack is not executable and is guarded (stack protector), calls of memcpy and the like are checked (FORTIFY),
# programs are position-independent. First it shows that it would notice a file without these.
set -u
build=${QAT_BUILD_ROOT:?}
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
option() { # option <name>: its value in this build, without quotes
    meson introspect "$build" --buildoptions | tr '}' '\n' | sed -n "s/.*\"name\": \"$1\", \"value\": \"\{0,1\}\([^,\"]*\).*/\1/p"
}
if ! command -v readelf >/dev/null; then
    echo "SKIP hardening: no readelf (package binutils)"
    exit 0
fi
if [ "$(option hardening)" != true ]; then
    echo "SKIP hardening: this build is made with -Dhardening=false"
    exit 0
fi

# Each prints what is wrong with a file, or nothing.
relro() {
    readelf -lW "$1" | grep -q GNU_RELRO || echo "no RELRO"
    readelf -dW "$1" | grep -qE 'BIND_NOW|Flags:.* NOW' || echo "only partial RELRO"
}
stack() {
    readelf -lW "$1" | awk '$1 == "GNU_STACK" { found = 1; if ($7 ~ /E/) print "an executable stack" }
        END { if (!found) print "no word about the stack" }'
}
text() {
    readelf -dW "$1" | grep -q TEXTREL && echo "code that is changed at start"
    readelf -hW "$1" | grep -qE 'Type: +DYN' || echo "a fixed address"
}
imports() { # imports <file>: the functions that it takes from elsewhere
    readelf --dyn-syms -W "$1" | awk '$7 == "UND" { sub("@.*", "", $8); print $8 }'
}
guarded() {
    imports "$1" | grep -q '^__stack_chk_fail' || echo "no stack protector"
}
fortified() {
    imports "$1" | grep -v '^__stack_chk' | grep -q '^__.*_chk$' || echo "no checked call (FORTIFY)"
}
everything() {
    for property in relro stack text guarded fortified; do $property "$1"; done
}

# ---------------------------------------------------------------- it would notice
cat >weak.c <<'C'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[16];
    strcpy(text, argv[argc - 1]);
    return puts(text);
}
C
cc -O2 -U_FORTIFY_SOURCE -fno-stack-protector -no-pie -fno-pie -Wl,-z,norelro,-z,lazy,-z,execstack weak.c -o weak 2>/dev/null
missing=$(everything weak | sort | paste -sd ';')
if [ "$missing" = "a fixed address;an executable stack;no RELRO;no checked call (FORTIFY);no stack protector;only partial RELRO" ]; then
    ok "a weak program is noticed: $missing"
else
    not_ok "of a weak program this is noticed only: $missing"
fi

# ---------------------------------------------------------------- what is installed
check "meson install" env DESTDIR="$work/stage" meson install -C "$build" --no-rebuild --quiet
checks_calls=no # only an optimizing compiler does, and the sanitizers take its place
[ "$(option optimization)" != 0 ] && [ "$(option b_sanitize)" = none ] && checks_calls=yes
files=0
while IFS= read -r file; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    files=$((files + 1))
    case $file in
    */qat/lib*.so) properties="relro stack text" ;; # plugins, in any kind of lib: no arrays
    *) properties="relro stack text guarded" && [ $checks_calls = yes ] && properties="$properties fortified" ;;
    esac
    wrong=$(for property in $properties; do $property "$file"; done | paste -sd ';')
    if [ -z "$wrong" ]; then ok "${file##*/}: $properties"; else not_ok "${file##*/}: $wrong"; fi
done < <(find "$work/stage" -type f | sort)
if [ $files -ge 13 ]; then ok "$files files: commands, libraries, plugins"; else not_ok "only $files ELF files are installed"; fi
[ $checks_calls = yes ] || echo "SKIP hardening, FORTIFY: this build is not optimized, or has sanitizers"

# Static libraries: objects without a word about the stack would make it executable in every program.
for archive in $(find "$work/stage" -name '*.a'); do
    bad=$(readelf -SW "$archive" | awk '
        /^File: / { if (file && !note) print file; file = $2; note = 0 }
        /\.note\.GNU-stack/ { note = $0 !~ / X / }
        END { if (file && !note) print file }' | head -n 3)
    if [ -z "$bad" ]; then ok "${archive##*/}: no object asks for an executable stack"; else
        not_ok "${archive##*/}: an executable stack for $bad"
    fi
done

# ---------------------------------------------------------------- how the objects are compiled
# all but the inner loops of the engine, which get the flag that turns it off behind the one that turns it on
sed -n 's/.*"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" |
    grep -E ' -c ([^ ]*/)?(lib|tools|datasets|examples)/' |
    grep -v '/lib/infer/libqatinfer_[a-z0-9]*\.a\.p/host_\(x86\|arm\)_' >commands.txt
unguarded=$(grep -vE -- '-fstack-protector-(strong|all)' commands.txt | sed 's/.* -c //' | head -n 3)
objects=$(wc -l <commands.txt)
if [ -z "$unguarded" ] && [ "$objects" -ge 300 ]; then
    ok "every object outside the inner loops is compiled with a stack protector: $objects"
else
    not_ok "of $objects objects these are compiled without a stack protector: $unguarded"
fi
exit $failed
