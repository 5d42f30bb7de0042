#!/usr/bin/env bash
# Measures the code of C files for lib/export/c/code_bytes.c, which it prints: the networks of networks.sh, and small ones
# for each function that these lack, compiled for each core with -Os. By hand, after a change of kernels or of the
# compiler; some ten minutes.
#
#     QAT_BUILD_ROOT=build QAT_SOURCE_ROOT=. code_bytes.sh TESTS >code_bytes.c      TESTS: the folder of the test programs
set -u
export LC_ALL=C
tests=$(realpath "${1:?}") random=10
QAT_BUILD_ROOT=$(realpath "${QAT_BUILD_ROOT:?}") QAT_SOURCE_ROOT=$(realpath "${QAT_SOURCE_ROOT:?}")
tools=$QAT_BUILD_ROOT/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/networks.sh"
for network in $drawn_networks $imported_networks mobilenet4; do make_network "$network" && echo "$network.qm"; done >whole.txt
"$tools/qat-export" mobilenet4.qm packed.qm --ram 32K >made.txt && echo packed.qm >>whole.txt

thumb="arm-none-eabi-gcc -mthumb -mcpu"
declare -A compiler=(
    [cortex-m0plus]="$thumb=cortex-m0plus" [cortex-m3]="$thumb=cortex-m3" [cortex-m4]="$thumb=cortex-m4" [cortex-m7]="$thumb=cortex-m7"
    [cortex-m55]="$thumb=cortex-m55 -mfloat-abi=hard" [riscv32]="riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32"
)
declare -A helper_bytes
flash() { $objects-size -A "$1" | awk '/^[.](text|rodata|srodata|data|sdata)/ { n += $2 } END { print n + 0 }'; }
count() { grep -oE "$1" net.c | wc -l; }

# Lines for code_bytes.py:
#   network MODEL WHOLE FEATURES LAYERS PLACES PARTS PORTS STATES TEST DATA    what sizes.c knows of it; DATA: bytes
#   has MODEL FUNCTION                                                         its text has this function
#   total MODEL CORE BYTES                                                     of code and constants, with what libgcc adds
#   helper MODEL CORE NAME BYTES                                               a function of libgcc that it needs
#   function MODEL CORE FUNCTION BYTES                                         where the compiler moves none into its only caller
measure() { # measure <model> <0 or 1: a whole network> <options of qat-export>
    model=$1 whole=$2
    shift 2
    "$tools/qat-export" "$model" net.c --no-preprocessing "$@" >/dev/null 2>&1 || return
    features=$(sed -n 's/^#define \(QK_[A-Z_]*\) 1.*/\1/p' net.c | tr '\n' ',')
    # small networks whose functions have all been seen with these features say nothing new
    sed -n 's/^[A-Za-z][^(]*[ *]\(q[ik]_[a-z0-9_]*\)(.*/\1/p' net.c | sort -u >has.txt
    sed "s|^|$features |" has.txt >new.txt
    [ "$whole" = 1 ] || [ -n "$(comm -23 new.txt seen.txt)" ] || return
    sort -u new.txt seen.txt >all.txt && mv all.txt seen.txt
    data=$(sed -n 's/.*Flash: \([0-9]*\) of constants, \([0-9]*\) of parameters, \([0-9]*\) for the.*/\1 \2 \3/p' net.h | awk '{ print $1 + $2 + $3 }')
    echo "network $model $whole ${features:-,} $(sed -n 's/^#define NET_LAYERS //p' net.h) $(grep -v '^static' net.c | grep -o 'place(a,' | wc -l) $(count 'd = digest_of\(d,') \
$(grep -cE '^#define NET_(IN|OUT)[0-9]*_COUNT' net.h) $(grep -c 'memcpy(a + [0-9]*, a + ' net.c) $(grep -c 'net_self_test(.*)$' net.c) $data"
    sed "s|^|has $model |" has.txt
    for core in "${!compiler[@]}"; do
        build="${compiler[$core]} -Os -std=c99 -ffreestanding -ffunction-sections -fdata-sections -c net.c -o size.o"
        objects=${compiler[$core]%%-gcc*}
        $build
        script=
        [ "$core" != riscv32 ] || script="-T $QAT_SOURCE_ROOT/examples/device/riscv32.ld" # its linker makes calls shorter
        ${compiler[$core]} -nostdlib size.o -lgcc -Wl,--unresolved-symbols=ignore-all,-e,0 $script -o linked.o
        echo "total $model $core $(flash linked.o)"
        # a division and its remainder are one
        for helper in $($objects-nm -u size.o | awk '$2 !~ /^mem|mod$/ { print $2 }'); do
            if [ -z "${helper_bytes[$core $helper]:-}" ]; then
                ${compiler[$core]} -nostdlib -r -Wl,-u,"$helper" -lgcc -o linked.o
                helper_bytes[$core $helper]=$(flash linked.o)
            fi
            echo "helper $model $core $helper ${helper_bytes[$core $helper]}"
        done
        $build -fno-inline-functions-called-once
        $objects-nm -S --radix=d size.o | awk -v start="function $model $core" 'NF == 4 && $3 ~ /[tT]/ { sub(/[.].*/, "", $4); print start, $4, $2 + 0 }'
    done
}
: >seen.txt
{
    while read -r model; do measure "$model" 1; done <whole.txt
    i=0
    while read -r model; do
        i=$((i + 1))
        if [ $((i % 2)) = 0 ]; then measure "$model" 0 --no-self-test; else measure "$model" 0; fi
    done < <(grep -v ' ' chosen.txt) # a field is a word
} >measured.txt
[ -z "${KEEP:-}" ] || cp measured.txt "$KEEP"
python3 "$QAT_SOURCE_ROOT/tests/c_source/code_bytes.py" <measured.txt
