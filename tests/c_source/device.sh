#!/usr/bin/env bash
# Networks as C source on emulated devices: a Cortex-M0, M3, M4, M7, M55 and a RISC-V processor give the engine's bytes, in
# 20 runs of each network, and pass the self-test. Start-up code and Makefiles are those of examples/.
#
#     device.sh ANSWERS TESTS      as c_source.sh
set -u
answers=$(realpath "${1:?}") tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools examples=${QAT_SOURCE_ROOT:?}/examples
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
random=10
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"

cat >main.c <<'END'
#include "device.h"
int check_network(void);
int main(void)
{
    return check_network() != 0;
}
END
# random ones, and every sixteenth of the others; of these the ones whose arena a small device holds
{ grep models/2 chosen.txt; grep -v models/2 chosen.txt | awk 'NR % 16 == 1'; } >some.txt
n=0
while read -r model; do # a folder for each: its source, with the answers
    n=$((n + 1))
    net=nets/$n
    mkdir -p "$net"
    echo "$model" >"$net/name"
    if ! { "$tools/qat-export" "$model" "$net/net.c" >/dev/null && "$answers" "$model" net 20 >answers.c; }; then
        not_ok "$model: no source"
        rm -r "$net"
        continue
    fi
    bytes=$(sed -n 's/^#define NET_ARENA_BYTES \([0-9]*\).*/\1/p' "$net/net.h")
    if [ "$bytes" -le 7000 ] && [ "$(wc -c <"$net/net.c")" -le 300000 ]; then
        cat answers.c >>"$net/net.c"
    else
        rm -r "$net"
    fi
done <some.txt
try() { # try <folder> <make's variables>: the networks that differ, and how many ran
    folder=$1
    shift
    for net in nets/*; do
        rm -f run.elf
        make -s -f "$examples/$folder/Makefile" run "$@" NET=$net/net.c MAIN=main.c OUT=run.elf CFLAGS="-Os -I$net -I." </dev/null >out.txt 2>&1 || echo "$(cat "$net/name"): $(tail -n 2 out.txt)"
        echo ran >>ran.txt
    done
}
device() { # device <name> <emulator> <compiler> <folder> <make's variables>
    name=$1 emulator=$2 compiler=$3
    shift 3
    for program in "$emulator" "$compiler"; do
        if ! command -v "$program" >/dev/null; then
            echo "SKIP $name: $program is not installed"
            return
        fi
    done
    : >ran.txt
    wrong=$(try "$@")
    n=$(wc -l <ran.txt)
    if [ -z "$wrong" ] && [ "$n" -ge 10 ]; then ok "$name: $n networks"; else not_ok "$name: of $n networks: $(head -n 10 <<<"$wrong")"; fi
}
device cortex-m0 qemu-system-arm arm-none-eabi-gcc cortex-m0plus BOARD=microbit
for core in cortex-m3 cortex-m4 cortex-m7 cortex-m55; do
    device $core qemu-system-arm arm-none-eabi-gcc $core
done
device riscv32 qemu-system-riscv32 riscv64-unknown-elf-gcc riscv32
if command -v arm-none-eabi-gcc >/dev/null; then
    net=$(echo nets/* | cut -d' ' -f1)
    link() { # link <make's variables>
        make -s -f "$examples/cortex-m4/Makefile" NET="$net/net.c" MAIN=main.c OUT=fits.elf CFLAGS="-Os -I. -I$net" "$@" >out.txt 2>&1
    }
    if link; then ok "it is linked for much memory"; else not_ok "it is not linked: $(tail -n 2 out.txt)"; fi
    if link RAM_BYTES=64; then not_ok "the program for much memory is taken for little"; else
        ok "and again for less, where it does not fit"
    fi
fi
exit $failed
