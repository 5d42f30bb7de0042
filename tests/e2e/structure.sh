#!/usr/bin/env bash
# The structure that CONTRIBUTING.md describes is that of the code: a folder includes only what the table's last column
# names, no folders include each other in a circle, libqat takes only public names from libqatinfer, and no op is told
# by its name outside its own file. (lib/certify shares nothing, so it has names of its own; convert/tflite has foreign names.)
set -u
build=${QAT_BUILD_ROOT:?}
. "${QAT_SOURCE_ROOT:?}/tests/e2e/checks.sh"

rules() { # rules <root>: "folder allowed" pairs of the table, one a line; an empty third column gives none
    sed -n 's/^| `\([a-z/]*\)` | .* |\([^|]*\)|$/\1 \2/p' "$1/CONTRIBUTING.md" | while read -r folder allowed; do
        grep -o '`[^`]*`' <<<"$allowed" | tr -d '`' | sed "s#^#$folder #"
    done
}
includes() { # includes <root> <folder>: what its files include of other folders, with file and line
    grep -rnoE '^#include "[^"/]+/[^"]*' --include='*.[ch]' "$1/$2" | sed "s#^$1/##; s/#include \"/ /" |
        grep -vE " (qat|$(basename "$2"))/"
}
broken() { # broken <root>: includes that no rule allows
    rules "$1" >rules.txt
    sed -n 's/^| `\([a-z/]*\)` | .* |.*|$/\1/p' "$1/CONTRIBUTING.md" | while read -r folder; do
        [ -d "$1/$folder" ] && [ "$folder" != tests ] || continue
        includes "$1" "$folder" | while read -r where header; do
            grep -qxF -e "$folder ${header%%/*}" -e "$folder $header" rules.txt || echo "${where%:} includes $header"
        done
    done
}
circle() { # circle <root>: a line for each folder that is part of one
    rules "$1" | sed 's#^lib/##; s#/.*##' | grep -v 'common$' | tsort 2>&1 >/dev/null
}

lines=$(rules "$QAT_SOURCE_ROOT" | wc -l)
if [ "$lines" -ge 20 ]; then ok "the table has $lines rules"; else not_ok "only $lines rules are found in CONTRIBUTING.md"; fi
bad=$(broken "$QAT_SOURCE_ROOT")
if [ -z "$bad" ]; then ok "every folder includes only what it may"; else not_ok "$bad"; fi
bad=$(circle "$QAT_SOURCE_ROOT")
if [ -z "$bad" ]; then ok "no circle of folders"; else not_ok "$bad"; fi

mkdir -p wrong/lib/detect wrong/lib/base
printf '| `lib/detect` | x | `base` |\n| `lib/base` | x | `detect` |\n' >wrong/CONTRIBUTING.md
printf '#include "train/loop.h"\n#include "base/arena.h"\n' >wrong/lib/detect/a.c
if [ "$(broken wrong)" = "lib/detect/a.c:1 includes train/loop.h" ] && [ -n "$(circle wrong)" ]; then
    ok "a wrong include and a circle would be noticed"
else
    not_ok "of a wrong tree this is noticed: $(broken wrong) $(circle wrong)"
fi

# ---------------------------------------------------------------- names across libraries
if command -v nm >/dev/null && [ -f "$build/lib/libqat.so" ]; then
    private=$(nm -D --undefined-only "$build/lib/libqat.so" | awk '$2 ~ /^qi_/ { print $2 }' | while read -r name; do
        grep -qw "$name" "$QAT_SOURCE_ROOT"/include/qat/*.h || echo "$name"
    done)
    if [ -z "$private" ]; then ok "libqat takes only public names from libqatinfer"; else not_ok "private names: $private"; fi
else
    echo "SKIP names across libraries: no nm (package binutils), or no shared libqat"
fi

# ---------------------------------------------------------------- names of ops
told=$(grep -rnE 'qat_node_is_op\(|strcmp\([a-z_>.-]*op->name,' --include='*.c' "$QAT_SOURCE_ROOT"/{lib,tools,datasets} |
    grep -vE '/lib/(certify|convert/tflite|autograd/graph\.c)' | sed "s#^$QAT_SOURCE_ROOT/##")
if [ -z "$told" ]; then ok "no float op is told by its name"; else not_ok "$told"; fi
exit $failed
