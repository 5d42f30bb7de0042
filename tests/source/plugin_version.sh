#!/usr/bin/env bash
# Plugins that were compiled with other headers are refused with a sentence, and the number of plugins'
# version rises with the structs that it guards. One `ok -` or `not ok -` line a check.
#
#   tests/source/plugin_version.sh --record    after the number was raised: write plugin_version.txt anew
set -u
source=${QAT_SOURCE_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
record=$source/tests/source/plugin_version.txt

# ---------------------------------------------------------------- the structs, without comments and blanks
# Enumerations that plugins use stand in no struct's size, but change what its members mean.
definitions() {
    structs=$(sed -n '/define QAT_PLUGIN_STRUCTS/,/^$/p' "$source/include/qat/plugin.h" |
        grep -oE 'X\([a-z_]+\)' | sed 's/X(\(.*\))/\1/')
    enums="qat_status qat_attr_type qat_init qat_mode qat_grads qat_layout qat_profile qat_quant_role
        qat_sample_type qat_figure_kind qi_status qi_type qi_tensor_kind qi_border qi_rounding qi_products"
    for header in status graph quant quantizer rounding infer dataset detect border task; do
        sed -e 's#//.*##' "$source/include/qat/$header.h"
    done | tr '\n\t' '  ' | sed 's#/\*#\n/*#g; s#\*/#*/\n#g' | grep -v '^/\*' | tr -d ' \n' >text.txt
    for name in $structs; do
        grep -oE "struct$name\{[^}]*\}" text.txt || echo "struct $name: not found"
    done
    for name in $enums; do
        grep -oE "enum$name\{[^}]*\}" text.txt || echo "enum $name: not found"
    done
}
number=$(sed -n 's/.*QAT_PLUGIN_NUMBER = \([0-9]*\).*/\1/p' "$source/include/qat/plugin.h")
digest() {
    definitions >definitions.txt
    echo "$number $(sha256sum <definitions.txt | cut -c 1-32)"
}
if [ "${1:-}" = --record ]; then
    work=$(mktemp -d) && cd "$work" || exit 1
    digest >"$record"
    grep 'not found' definitions.txt
    cat "$record"
    exit
fi

tools=${QAT_BUILD_ROOT:?}/tools
. "$source/tests/common/checks.sh"

digest >now.txt
has "every guarded struct is found" "^0$" <(grep -c 'not found' definitions.txt)
if cmp -s now.txt "$record"; then ok "plugin version $number is that of these structs"; else
    not_ok "the structs that plugins share have changed. In include/qat/plugin.h raise QAT_PLUGIN_NUMBER above \
$(cut -d ' ' -f 1 "$record"), then run tests/source/plugin_version.sh --record"
fi

# ---------------------------------------------------------------- plugins of other headers
cat >plain.c <<'C'
#include "qat/plugin.h"
const qat_plugin qat_plugin_entry = {.version = QAT_PLUGIN_VERSION, .name = "plain"};
C
plugin() { # plugin <name> <folder of headers>
    "${CC:-cc}" -std=c11 -shared -fPIC -I "$2" "${3:-plain.c}" -o "$1.so"
}
printf '[data]\nkind = digits\ntrain_count = 64\ntest_count = 20\n[model]\nfilters = 4\nstrides = 2
[train]\nsteps = 1\nbatch = 16\n' >small.ini
train() {
    "$tools/qat-train" small.ini --set "plugin.path=./$1.so" --out "$1"
}

plugin same "$source/include"
check "the same headers" train same

cp -r "$source/include" grown
sed -i 's/^    bool forgets_scratch;/    bool forgets_scratch;\n    void *one_more;/' grown/qat/graph.h
plugin grown grown
refuses "a member more in qat_op" 1 "it was compiled with another qat_op (" train grown

cp -r "$source/include" longer
sed -i 's/^    int in_place;/    int in_place;\n    void *one_more;/' longer/qat/infer.h
plugin longer longer
refuses "a member more in qi_kernel" 1 "it was compiled with another qi_kernel (" train longer

cp -r "$source/include" next
sed -i "s/QAT_PLUGIN_NUMBER = $number/QAT_PLUGIN_NUMBER = $((number + 1))/" next/qat/plugin.h
plugin next next
refuses "the next version" 1 "for plugin version $((number + 1)), this library takes $number" train next

cat >old.c <<'C'
/* As the header was up to version 2. */
const struct { int version; const char *name; const void *ops; int n_ops; const void *kernels; int n_kernels; }
    qat_plugin_entry = {2, "old", 0, 1000, 0, 1000};
C
plugin old "$source/include" old.c
refuses "version 2" 1 "for plugin version 2, this library takes $number" train old
exit $failed
