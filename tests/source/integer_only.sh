#!/bin/sh
# No object of lib/infer, host included, holds a floating-point arithmetic, comparison or conversion
# instruction, nor a call of a function that does it instead. Before it looks, the test shows that it
# would notice (floating.sh).
#
#   tests/source/integer_only.sh BUILD_DIR      a build of this tree
#
# OBJDUMP, NM and CC choose the tools: a cross build's own. INFER_FOLDERS: folders below lib/infer of
# whose every file the build must hold an object (default: those of a host).
set -eu

build=${1:?usage: integer_only.sh BUILD_DIR}
root=$(cd "$(dirname "$0")/../.." && pwd)
objdump=${OBJDUMP:-objdump}
nm=${NM:-nm}
compiler=${CC:-cc}
work=$build/integer_only
rm -rf "$work"
mkdir -p "$work"

fail() {
    echo "not ok - integer_only: $*"
    exit 1
}

# shellcheck source=tests/source/floating.sh
. "$root/tests/source/floating.sh"
check_detector

objects=$(find "$build/lib/infer" -name '*.o' | sort)
[ -n "$objects" ] || fail "no objects in $build/lib/infer: build first"
for folder in ${INFER_FOLDERS:-model ops sound host host/drivers host/lines host/loops}; do
    for source in "$root/lib/infer/$folder"/*.c; do
        echo "$objects" | grep -q "$(basename "$source")" || fail "no object of $source"
    done
done
# shellcheck disable=SC2086
found=$(floating_instructions $objects)$(floating_helpers $objects)
[ -z "$found" ] || fail "floating point in lib/infer:
$found"
instructions=0
for object in $objects; do
    n=$("$objdump" -d --no-show-raw-insn "$object" | grep -cE '^ *[0-9a-f]+:	' || true)
    [ "$n" -gt 0 ] || fail "no instruction in $object"
    instructions=$((instructions + n))
done
echo "read: $(echo "$objects" | wc -l) objects of lib/infer, $instructions instructions, none of them floating point"
echo "ok - integer_only"
