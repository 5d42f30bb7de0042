#!/usr/bin/env bash
# Networks as C source (qat-export --format c): every compiler that is there takes the files without a warning, the
# program needs memcpy and memset alone, and its outputs are the engine's, byte for byte, in 20 runs of each network.
#
#     c_source.sh ANSWERS TESTS      ANSWERS: tests/c_source/answers.c, built; TESTS: the folder of the test programs
#
# The networks are those that the tests of the engine make: of every op, of every type and rounding, and random ones.
# By default a few of each kind are taken; QAT_C_SOURCE_EVERY=1 takes all (some thousands), N every Nth.
set -u
answers=${1:?} tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/source/floating.sh"
warnings="-Wall -Wextra -Wconversion -Wpedantic -Werror"

mkdir models
for program in test_golden_ops test_infer test_infer_wide test_infer_moves test_infer_resize test_infer_imported test_infer_even \
    test_infer_reduce test_state test_packing test_import_ops; do
    QAT_KEEP_MODELS=$work/models "$tests/$program" >/dev/null 2>&1
done
QAT_PROPERTY_KEEP=$work/models "$tests/test_property" 20240607 24 >/dev/null 2>&1
rm -f models/*.tflite models/golden_* # import_* are the same

# ---------------------------------------------------------------- which networks
ops() { # ops <model>: the names of its ops, sorted
    "$tools/qat-inspect" "$1" --json | tr ',{' '\n\n' | sed -n 's/^ *"op": "\([a-z0-9_]*\)".*/\1/p' | sort -u
}
kind_of() { basename "$1" .qm | sed 's/[0-9]*$//; s/^[0-9-]*$/random/'; }
every=${QAT_C_SOURCE_EVERY:-0}
: >chosen.txt
for model in models/*.qm; do printf '%s\t%s\n' "$(kind_of "$model")" "$model"; done |
    awk -F '\t' -v every="$every" '{ n[$1]++; if (every ? (n[$1] - 1) % every == 0 : n[$1] <= ($1 == "random" ? 24 : 1)) print $2 }' >chosen.txt

# ---------------------------------------------------------------- each network
cat >main.c <<'END'
#include <stdio.h>
int check_network(void);
int main(void)
{
    int const wrong = check_network();
    if (wrong)
        printf("%s %d\n", wrong < 0 ? "self-test: layer" : "run", wrong < 0 ? -1 - wrong : wrong);
    return wrong != 0;
}
END
arm() { command -v arm-none-eabi-gcc >/dev/null; }
helpers='__aeabi_(u?[il]div(mod)?|l(mul|lsl|lsr|asr)|u?lcmp|[il]div0|memcpy[48]?|memset[48]?|memclr[48]?)|__gnu_thumb1_case_[a-z0-9]*'
compile() { # compile <flags for gcc>: net.c of this folder by each compiler; prints what is wrong
    gcc $warnings -std=c99 -O1 "$@" -c net.c -o net.o || echo "gcc: $model"
    count=$((count + 1))
    [ $((count % 4)) = 1 ] || return 0 # the others have seen enough of them
    if command -v clang >/dev/null; then clang $warnings -std=c99 "$@" -fsyntax-only net.c || echo "clang: $model"; fi
    if command -v g++ >/dev/null; then g++ $warnings -std=c++17 "$@" -x c++ -fsyntax-only net.c || echo "g++: $model"; fi
    if arm; then
        arm-none-eabi-gcc $warnings -std=c99 -mcpu=cortex-m0plus -mthumb -Os -ffreestanding "$@" -c net.c -o arm.o || echo "arm: $model"
        bad=$(arm-none-eabi-nm -u arm.o | awk '{ print $2 }' | grep -vxE "memcpy|memset|$helpers" | tr '\n' ' ')
        [ -z "$bad" ] || echo "$model needs $bad"
    fi
}
try() { # try <model> <options of qat-export>: prints what is wrong
    model=$1
    shift
    "$tools/qat-export" "$model" net.c "$@" >/dev/null || echo "not written: $model"
    "$answers" "$model" net 20 >answers.c || echo "no answers: $model"
    compile
    gcc -O1 main.c answers.c net.o -o run && ./run || echo "$model differs"
}
count=0
wrong=$(while read -r model; do try "$model"; done <chosen.txt 2>&1)
n=$(wc -l <chosen.txt)
if [ -z "$wrong" ] && [ "$n" -ge 100 ]; then ok "$n networks: no warning, the engine's bytes in 20 runs of each"; else
    not_ok "of $n networks:"
    head -n 40 <<<"$wrong"
fi
while read -r model; do ops "$model"; done <chosen.txt | sort -u >seen.txt
lacks=$(grep -oE 'X\([a-z0-9_]+\)' "$QAT_SOURCE_ROOT/include/qat/infer.h" | sed 's/X(\(.*\))/\1/' | grep -v '^name$' | sort -u | comm -23 - seen.txt | tr '\n' ' ')
if [ -z "$lacks" ]; then ok "among them are all ops"; else not_ok "no network has: $lacks"; fi
exit $failed
