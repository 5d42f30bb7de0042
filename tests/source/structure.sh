#!/usr/bin/env bash
# The structure that CONTRIBUTING.md describes is that of the code: a folder includes only what the table's last column
# names, no folders include each other in a circle, no folder is large, libqat takes only public names from libqatinfer, no op is told
# by its name outside its own file, and all files are as clang-format leaves them. (lib/certify shares nothing, so it has names of its own; convert/tflite has foreign names.)
set -u
build=${QAT_BUILD_ROOT:?}
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

rules() { # rules <root>: "folder allowed" pairs of the table, one a line; an empty third column gives none
    sed -n 's/^| `\([a-z0-9/]*\)` | .* |\([^|]*\)|$/\1 \2/p' "$1/CONTRIBUTING.md" | while read -r folder allowed; do
        grep -o '`[^`]*`' <<<"$allowed" | tr -d '`' | sed "s#^#$folder #"
    done
}
folders() { # folders <root>: those of code
    (cd "$1" && find lib datasets tools -name '*.[ch]' 2>/dev/null | sed 's#/[^/]*$##' | sort -u)
}
includes() { # includes <root> <folder>: "file:line header" of what its files include of other folders
    (cd "$1" && grep -noE '^#include "[^"]+' "$2"/*.[ch] /dev/null) | sed 's/:#include "/ /' |
        grep -vE " (qat|${2#lib/})/[^/]*$"
}
broken() { # broken <root>: includes that no rule allows, rules that nothing needs, folders that the table lacks
    rules "$1" >rules.txt
    : >used.txt
    folders "$1" | while read -r folder; do
        grep -qF "| \`$folder\` |" "$1/CONTRIBUTING.md" || echo "$folder has no row"
        includes "$1" "$folder" | while read -r where header; do
            { grep -xF -e "$folder ${header%/*}" -e "$folder $header" rules.txt || echo "$where includes $header" >&2; } >>used.txt
        done 2>&1
    done
    sort -u used.txt | comm -13 - <(sort -u rules.txt) | sed 's/$/ is a rule that nothing needs/'
}
circle() { # circle <root>: a line for each folder that is part of one
    rules "$1" | sed -E 's#^lib/##; s#/[^/]*\.h$##' | tsort 2>&1 >/dev/null
}

lines=$(rules "$QAT_SOURCE_ROOT" | wc -l)
if [ "$lines" -ge 100 ]; then ok "the table has $lines rules"; else not_ok "only $lines rules are found in CONTRIBUTING.md"; fi
bad=$(broken "$QAT_SOURCE_ROOT")
if [ -z "$bad" ]; then ok "every folder includes what its row says, and no more"; else not_ok "$bad"; fi
bad=$(circle "$QAT_SOURCE_ROOT")
if [ -z "$bad" ]; then ok "no circle of folders"; else not_ok "$bad"; fi

mkdir -p wrong/lib/detect wrong/lib/base
printf '| `lib/detect` | x | `base` |\n| `lib/base` | x | `detect` |\n' >wrong/CONTRIBUTING.md
printf '#include "train/loop.h"\n#include "base/arena.h"\n' >wrong/lib/detect/a.c
wanted="lib/detect/a.c:1 includes train/loop.h
lib/base detect is a rule that nothing needs"
if [ "$(broken wrong)" = "$wanted" ] && [ -n "$(circle wrong)" ]; then
    ok "a wrong include and a circle would be noticed"
else
    not_ok "of a wrong tree this is noticed: $(broken wrong) $(circle wrong)"
fi

# ---------------------------------------------------------------- sizes of folders
full=$(cd "$QAT_SOURCE_ROOT" && find lib datasets tools include bench tests \
    \( -path tests/fuzz/corpus -o -path tests/golden/data \) -prune -o -type f -printf '%h\n' | sort | uniq -c | awk '$1 > 25 { print $2 ": " $1 " files" }')
if [ -z "$full" ]; then ok "no folder of code holds more than 25 files"; else not_ok "$full"; fi

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
rows() { # rows <header>: the names of its rows
    grep -oE '^    X\([a-z0-9_]+' "$QAT_SOURCE_ROOT/lib/autograd/ops/$1.h" | sed 's/.*(//'
}
unknown=$(for row in "clamps fuse" "curves table"; do
    for op in $(rows "${row% *}"); do
        grep -q "{\"$op\"," "$QAT_SOURCE_ROOT/lib/certify/${row#* }.c" || echo "$op"
    done
done)
if [ -z "$unknown" ] && [ -n "$(rows clamps)" ] && [ -n "$(rows curves)" ]; then
    ok "the certificate has bounds and functions of its own for all clamps and curves"
else
    not_ok "lib/certify does not know $unknown"
fi
told=$(grep -rnE 'qat_node_is_op\(|strcmp\([a-z_>.-]*op->name,' --include='*.c' "$QAT_SOURCE_ROOT"/{lib,tools,datasets} |
    grep -vE '/lib/(certify|convert/tflite|autograd/graph/graph\.c)' | sed "s#^$QAT_SOURCE_ROOT/##")
if [ -z "$told" ]; then ok "no float op is told by its name"; else not_ok "$told"; fi

# ---------------------------------------------------------------- what a library does not do
does=$(grep -rnE '(^|[^a-z_])(printf|puts|putchar|perror|exit|abort|fork|system|popen|exec[vl]p?e?)\(|[^a-z_]std(out|err)[^a-z_]' \
    --include='*.c' "$QAT_SOURCE_ROOT"/{lib,datasets} | sed "s#^$QAT_SOURCE_ROOT/##")
if [ -z "$does" ]; then ok "the library neither prints, ends nor forks"; else not_ok "$does"; fi
told=$(grep -rnE '"[^"]*(out of memory|no memory)' --include='*.c' "$QAT_SOURCE_ROOT"/{lib,datasets,examples} |
    grep -vE '/lib/(infer/|base/status\.c|task/detector\.c)' | sed "s#^$QAT_SOURCE_ROOT/##")
if [ -z "$told" ]; then ok "out of memory is told by qat_out_of_memory alone"; else not_ok "$told"; fi

# ---------------------------------------------------------------- format
formatter=$(command -v clang-format-14 || command -v clang-format)
misformatted() { # misformatted <files...>: those that are not as the formatter leaves them
    "$formatter" --dry-run -Werror "$@" 2>&1 | sed -n 's/^\([^:]*\):.*clang-format-violations.*/\1/p' | sort -u
}
if [ -n "$formatter" ] && "$formatter" --version | grep -q 'version 14\.'; then # others break some lines in other places
    cp "$QAT_SOURCE_ROOT/.clang-format" .
    printf 'int  a;\n' >wrong.c
    if [ -n "$(misformatted wrong.c)" ]; then ok "a file of another format would be noticed"; else not_ok "a file of another format is not noticed"; fi
    cd "$QAT_SOURCE_ROOT" || exit 1
    # shellcheck disable=SC2046
    bad=$(misformatted $(find lib datasets tools include bench examples tests -path tests/golden/data -prune -o -name '*.[ch]' -print))
    if [ -z "$bad" ]; then ok "all files are as clang-format leaves them"; else not_ok "clang-format changes $bad"; fi
else
    echo "SKIP format: no clang-format of version 14 (package clang-format)"
fi
exit $failed
