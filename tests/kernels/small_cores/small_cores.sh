#!/usr/bin/env bash
# The kernels' loops for small processors, on random layers, against those that compilers turn into vectors: as plain
# programs of this machine, where C stands for the instructions of Armv7E-M, and on the processors that qemu-system-arm
# emulates.
#
#     small_cores.sh VECTORS PROGRAM...      programs of this machine, all from layers.c
set -u
programs=$(realpath "$@") # the checks work in a folder of their own
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

folder=$QAT_SOURCE_ROOT/tests/kernels/small_cores
first=${programs%%$'\n'*}
"$first" >expected.txt || not_ok "$first fails"
lines=$(wc -l <expected.txt)
if [ "$lines" -ge 2000 ]; then ok "$lines layers"; else not_ok "only $lines layers"; fi

compare() { # compare <name> <file>
    if cmp -s expected.txt "$2"; then ok "$1: $lines layers, equal bytes"; else
        not_ok "$1: the first layer that differs: $(diff expected.txt "$2" | sed -n 2p)"
    fi
}
for program in ${programs#*$'\n'}; do
    "$program" >out.txt || not_ok "$program fails"
    compare "${program##*/}" out.txt
done

on_board() { # on_board <cpu> <board> <flash> <ram> <compiler's flags>
    name=$1 board=$2 flash=$3 ram=$4
    shift 4
    arm-none-eabi-gcc -mcpu="$name" -mthumb -O2 -std=c11 -ffreestanding -nostdlib -DQK_ONE_FILE=1 "$@" \
        -I"$QAT_SOURCE_ROOT/include" -I"$QAT_SOURCE_ROOT/lib" -I"$QAT_SOURCE_ROOT/tests" \
        -Wl,--defsym=FLASH="$flash" -Wl,--defsym=RAM="$ram" -T "$folder/layers.ld" \
        "$folder/layers.c" "$folder/say_cortex_m.c" -lgcc -o board.elf 2>err.txt || {
        not_ok "$name does not compile: $(head -n 3 err.txt)"
        return
    }
    timeout 300 qemu-system-arm -M "$board" -display none -serial none -monitor none \
        -semihosting-config enable=on,target=native -kernel board.elf >out.txt 2>&1 </dev/null ||
        not_ok "$name: qemu ends with $?"
    compare "$name" out.txt
}
if command -v qemu-system-arm >/dev/null && command -v arm-none-eabi-gcc >/dev/null; then
    on_board cortex-m0plus mps2-an385 0 0x20000000
    on_board cortex-m0plus mps2-an385 0 0x20000000 -fno-omit-frame-pointer # a register less
    on_board cortex-m3 mps2-an385 0 0x20000000
    on_board cortex-m4 mps2-an386 0 0x20000000
    on_board cortex-m7 mps2-an500 0 0x20000000
    on_board cortex-m55 mps3-an547 0x10000000 0x30000000 -mfloat-abi=hard
else
    echo "SKIP emulated processors: no qemu-system-arm, or no arm-none-eabi-gcc"
fi
exit $failed
