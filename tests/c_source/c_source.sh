#!/usr/bin/env bash
# Networks as C source (qat-export --format c): every compiler that is there takes the files without a warning, the
# program needs memcpy and memset alone, and its outputs are the engine's, byte for byte, in 20 runs of each network.
#
#     c_source.sh ANSWERS TESTS      ANSWERS: tests/c_source/answers.c, built; TESTS: the folder of the test programs
#
# models.sh says which networks. Under the sanitizers it takes every eighth of them, and gcc compiles these with the
# sanitizers too.
set -u
answers=$(realpath "${1:?}") tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
compiler=arm-none-eabi-gcc objdump=arm-none-eabi-objdump nm=arm-none-eabi-nm
fail() { echo "$*"; }
. "$QAT_SOURCE_ROOT/tests/source/floating.sh" # integer_only.sh shows that it notices
ops() { # ops <model>: the names of its ops, sorted
    "$tools/qat-inspect" "$1" --json | tr ',{' '\n\n' | sed -n 's/^ *"op": "\([a-z0-9_]*\)".*/\1/p' | sort -u
}
warnings="-Wall -Wextra -Wconversion -Wpedantic -Werror"

random=24
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"

sanitizers='' least=100 others=yes
if [ "${QAT_SANITIZE:-none}" != none ]; then
    sanitizers="-g -fsanitize=$QAT_SANITIZE -fno-sanitize-recover=all" least=20 others=no
    awk 'NR % 8 == 1' chosen.txt >some.txt && mv some.txt chosen.txt
fi

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
integer_helpers='__aeabi_(u?[il]div(mod)?|l(mul|lsl|lsr|asr)|u?lcmp|[il]div0|memcpy[48]?|memset[48]?|memclr[48]?)|__gnu_thumb1_case_[a-z0-9]*'
compile() { # compile <flags for gcc>: net.c of this folder by each compiler; prints what is wrong
    gcc $warnings -std=c99 -O1 $sanitizers "$@" -c net.c -o net.o || echo "gcc: $model"
    [ "$others" = yes ] || return 0
    count=$((count + 1))
    [ $((count % 8)) = 1 ] || return 0 # the others have seen enough of them
    if command -v clang >/dev/null; then clang $warnings -std=c99 "$@" -fsyntax-only net.c || echo "clang: $model"; fi
    if command -v g++ >/dev/null; then g++ $warnings -std=c++17 "$@" -x c++ -fsyntax-only net.c || echo "g++: $model"; fi
    if arm; then
        for cpu in cortex-m4 cortex-m55; do
            arm-none-eabi-gcc $warnings -std=c99 -mcpu=$cpu -mthumb -mfloat-abi=hard -O2 -ffreestanding "$@" -c net.c -o /dev/null || echo "$cpu: $model"
        done
        arm-none-eabi-gcc $warnings -std=c99 -mcpu=cortex-m0plus -mthumb -Os -ffreestanding "$@" -c net.c -o arm.o || echo "arm: $model"
        bad=$(arm-none-eabi-nm -u arm.o | awk '{ print $2 }' | grep -vxE "memcpy|memset|$integer_helpers" | tr '\n' ' ')
        [ -z "$bad" ] || echo "$model needs $bad"
        # with a floating-point unit, where its instructions would be seen
        arm-none-eabi-gcc -std=c99 -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard -mthumb -O2 "$@" -c net.c -o float.o
        bad=$(floating_instructions float.o; floating_helpers arm.o float.o)
        [ -z "$bad" ] || echo "$model has $bad"
    fi
}
try() { # try <model> <options of qat-export>: prints what is wrong
    model=$1
    shift
    "$tools/qat-export" "$model" net.c "$@" >/dev/null || echo "not written: $model"
    "$answers" "$model" net 20 >answers.c || echo "no answers: $model"
    compile
    gcc -O1 main.c answers.c net.o $sanitizers -o run && ./run || echo "$model differs"
}
count=0
wrong=$(while read -r model; do try "$model"; done <chosen.txt 2>&1)
n=$(wc -l <chosen.txt)
if [ -z "$wrong" ] && [ "$n" -ge $least ]; then ok "$n networks: no warning, the engine's bytes in 20 runs of each"; else
    not_ok "of $n networks:"
    head -n 40 <<<"$wrong"
fi
if [ -z "$sanitizers" ]; then
    while read -r model; do ops "$model"; done <chosen.txt | sort -u >seen.txt
    lacks=$(grep -oE 'X\([a-z0-9_]+\)' "$QAT_SOURCE_ROOT/include/qat/infer.h" | sed 's/X(\(.*\))/\1/' | grep -v '^name$' | sort -u | comm -23 - seen.txt | tr '\n' ' ')
    if [ -z "$lacks" ]; then ok "among them are all ops"; else not_ok "no network has: $lacks"; fi
fi

# ---------------------------------------------------------------- whole networks from elsewhere
size_of() { # size_of <options>: code and constants of net.c for a Cortex-M4, with -Os
    "$tools/qat-export" "$network.qm" net.c "$@" >/dev/null
    arm-none-eabi-gcc -Os -std=c99 -mcpu=cortex-m4 -mthumb -c net.c -o size.o
    arm-none-eabi-size size.o | awk 'NR == 2 { print $1 }'
}
zoo=${QAT_DATA:-none}/models/mlperf-tiny
if [ -d "$zoo" ]; then
    for file in "$zoo"/kws_ref_model.tflite "$zoo"/vww_96_int8.tflite "$zoo"/pretrainedResnet_quant.tflite "$zoo"/model_ToyCar_quant_fullint_micro_intio.tflite; do
        network=$(basename "$file" .tflite)
        "$tools/qat-import" "$file" "$network.qm" >/dev/null
        before=$others others=no
        wrong=$(try "$network.qm" 2>&1)
        if [ -z "$wrong" ]; then ok "$network: the engine's bytes"; else not_ok "$wrong"; fi
        if arm && [ -z "$sanitizers" ]; then
            echo "$network on a Cortex-M4: $(size_of --separate-weights --no-self-test) bytes of code and parameters, $(size_of --separate-weights) with the self-test, \
$(size_of) with the constants; $(sed -n 's/^#define NET_ARENA_BYTES //p' net.h) of RAM"
        fi
        others=$before
    done
else
    echo "SKIP networks of MLPerf Tiny: no folder models/mlperf-tiny in QAT_DATA"
fi

# ---------------------------------------------------------------- options
with_states=$(ls models/state_* | head -n 1)
for model in "models/20240607-1.qm" "$with_states"; do
    count=0
    wrong=$(
        exec 2>&1
        "$tools/qat-export" "$model" net.c --prefix My_Net --section .weights --no-self-test >/dev/null
        "$answers" "$model" net 20 | sed 's/ net_/ My_Net_/' >answers.c
        compile
        gcc -DNO_SELF_TEST main.c answers.c net.o $sanitizers -o run && ./run
        [ "$(grep -c '^static.*MY_NET_SECTION' net.c)" = 0 ] || objdump -h net.o | grep -q '\.weights' || echo "no section .weights"
        grep -q self_test net.[ch] && echo "a self-test in spite of --no-self-test"
        "$tools/qat-export" "$model" net.c --caller-arena >/dev/null
        "$answers" "$model" net 20 >answers.c
        count=0
        compile
        gcc -DCALLER_ARENA -DARENA_BYTES=NET_ARENA_BYTES main.c answers.c net.o $sanitizers -o run && ./run
        [ -z "$sanitizers" ] && nm net.o | grep -q ' [bB] ' && echo "a static arena in spite of --caller-arena"
        "$tools/qat-export" "$model" net.c --separate-weights >/dev/null
        "$answers" "$model" net 20 >answers.c
        count=0
        compile -DNET_WEIGHTS_AT=0x60000000
        before=$others others=no
        compile
        objcopy -I binary -O elf64-x86-64 --rename-section .data=.rodata,alloc,load,readonly,data,contents \
            --set-section-alignment .data=16 --redefine-sym _binary_net_bin_start=net_weights net.bin weights.o
        gcc main.c answers.c net.o $sanitizers weights.o -Wl,-z,noexecstack -o run && ./run
        others=$before count=0
        "$tools/qat-export" "$model" net.c --strict >/dev/null
        compile
        gcc main.c answers.c net.o $sanitizers -o run && ./run
        sed 's, */\*.*\*/$,,' net.c | grep -nE '^ *(if|for|while) .*[^{]$|^ *else$' | grep -vE '(&&|\|\||[-+*?:(,=])$' # bodies without braces
    )
    if [ -z "$wrong" ]; then ok "${model#models/}: prefix, section, no self-test, caller's arena, separate weights, strict"; else not_ok "${model#models/}: $wrong"; fi
done
"$tools/qat-export" models/20240607-1.qm net.c >/dev/null
cp net.c before.c
"$tools/qat-export" models/20240607-1.qm --format c net >/dev/null
same "the name without an ending, a second time" before.c net.c
refuses "a prefix that is no name" 2 "expected letters, digits" "$tools/qat-export" models/20240607-1.qm net.c --prefix 'a-b'
refuses "an option of another format" 2 "are of the format c" "$tools/qat-export" models/20240607-1.qm net.onnx --caller-arena
cp models/20240607-1.qm model.c
refuses "a .qm in the place of the C file" 2 "it would be overwritten" "$tools/qat-export" models/20240607-1.qm model.c
exit $failed
