#!/usr/bin/env bash
# The networks that people put on microcontrollers, as C source: every compiler takes them without a warning, they need
# memcpy and memset alone, hold no floating point, and give the engine's bytes on six processors, in 20 runs of each.
# A table has what they take there: flash and RAM of the network, as the linker's map has them, and stack. What
# qat-train --dry-run says before the training is within 1 % of that, what NAME.h says as well; stack is within its bound.
#
#     ten_networks.sh ANSWERS [all | NETWORK ...]      without names: the small ones; networks.sh has all of them
#
# In the environment: CORES, some of the six.
set -u
answers=$(realpath "${1:?}") sanitizers=
shift
QAT_BUILD_ROOT=$(realpath "${QAT_BUILD_ROOT:?}") QAT_SOURCE_ROOT=$(realpath "${QAT_SOURCE_ROOT:?}")
tools=$QAT_BUILD_ROOT/tools examples=$QAT_SOURCE_ROOT/examples
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/compilers.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/networks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/map.sh"
# sizes of code were measured with this compiler
case $(arm-none-eabi-gcc -dumpversion 2>/dev/null) in 12.*) measured=yes ;; *) measured=no ;; esac
cores=${CORES:-cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55 riscv32}
case ${1:-short} in
short) networks="quickstart signals keyword_state anomaly_detection" ;;
all) networks="$drawn_networks $imported_networks" ;;
*) networks=$* ;;
esac

cat >main.c <<'END'
#include "answers.c"
#include "device.h"
int main(void)
{
    int const wrong = check_network();
    device_print(wrong ? "wrong " : "right ");
    device_print_number((unsigned long)(wrong < 0 ? -1 - wrong : wrong));
    device_print(" stack ");
    device_print_number(device_stack_bytes());
    device_print("\n");
    return wrong != 0;
}
END

on_host() { # prints what is wrong
    by_gcc
    by_others
    printf 'int check_network(void);\nint main(void) { return check_network() != 0; }\n' >host.c
    gcc -O1 host.c answers.c net.o -o host && ./host || echo "$model: other bytes on this computer"
}
# said <file> <core>: flash, RAM and stack, as qat-train --dry-run and qat-inspect print them
said() { awk -v core="$2" '$1 == core && NF == 5 { print $2, $4, $5 }' "$1"; }
# of_header <core>: the same of net.h
of_header() { sed -n "s/^ *$1  *flash \([0-9]*\), of it code [0-9]*; RAM \([0-9]*\), of it stack \([0-9]*\)$/\1 \2 \3/p" net.h; }
fits() { # fits <said> <is>: within 1 %, or 16 bytes
    local difference=$(($1 > $2 ? $1 - $2 : $2 - $1))
    [ $((100 * difference)) -le "$2" ] || [ $difference -le 16 ]
}
check_sizes() { # check_sizes <who> <core> <flash> <RAM without stack> <stack> <three numbers that it said>
    if [ $# != 8 ]; then
        echo "$model on $2: $1 says nothing"
        return
    fi
    fits "$6" "$3" || echo "$model on $2: $1 says $6 bytes of flash, the map $3"
    fits $(($7 - $8)) "$4" || echo "$model on $2: $1 says $(($7 - $8)) bytes of RAM without stack, the map $4"
    [ "$5" -le "$8" ] || echo "$model on $2: $1 says at most $8 bytes of stack, and it is $5"
}
on_core() { # on_core <core>: a line of the table; prints what is wrong to fd 3
    flags='-Os -I.'
    # 512 KB of flash are too few for some
    [ "$1" != cortex-m55 ] || flags="$flags -D'NET_SECTION=__attribute__((section(\".more\")))'"
    rm -f run.elf
    make -s -f "$examples/$1/Makefile" run MAIN=main.c OUT=run.elf CFLAGS="$flags" </dev/null >out.txt 2>&1
    result=$(sed -n 's/^\(right\|wrong\) \([0-9]*\) stack \([0-9]*\)$/\1 \2 \3/p' out.txt)
    set -- "$1" ${result:-nothing 0 0}
    [ "$2" = right ] || echo "$model on $1: $2, run or layer $3: $(tail -n 2 out.txt)" >&3
    flash=$(flash_of run.map run.net.o) ram=$(ram_of run.map run.net.o)
    printf '%-22s %-14s %8s %10d %10d %10d\n' "$model" "$1" "$2" "$flash" "$ram" "$4"
    [ "$measured" = yes ] || return
    for who in dry_run.txt header; do
        [ $who = header ] || [ -f $who ] || continue
        # shellcheck disable=SC2046
        check_sizes $who "$1" "$flash" "$ram" "$4" $([ $who = header ] && of_header "$1" || said $who "$1") >&3
    done
}
try() { # try <network>: its lines of the table; prints what is wrong to fd 3
    make_network "$1" && "$tools/qat-export" "$1.qm" net.c >/dev/null && "$answers" "$1.qm" net 20 >answers.c ||
        echo "$1 is not made: $(tail -n 2 made.txt)" >&3
    model=$1
    rm -f dry_run.txt
    # shellcheck disable=SC2046
    [ -n "$(file_of "$1")" ] || "$tools/qat-train" $(settings_of "$1") --dry-run >dry_run.txt 2>&1 || echo "$1: no dry run" >&3
    on_host >&3 2>&1
    for core in $cores; do on_core "$core"; done
}

for program in arm-none-eabi-gcc qemu-system-arm riscv64-unknown-elf-gcc qemu-system-riscv32; do
    if ! command -v $program >/dev/null; then
        echo "SKIP networks on devices: $program is not installed"
        exit $failed
    fi
done
printf '%-22s %-14s %8s %10s %10s %10s\n' network core 20\ runs 'flash [B]' 'RAM [B]' 'stack [B]'
for network in $networks; do
    if [ -n "$(file_of "$network")" ] && [ ! -d "$zoo" ]; then
        echo "SKIP $network: no folder models/mlperf-tiny in QAT_DATA"
        continue
    fi
    try "$network" 3>wrong.txt
    if [ -s wrong.txt ]; then not_ok "$network: $(head -n 20 wrong.txt)"; else ok "$network: the engine's bytes on $(wc -w <<<"$cores") processors"; fi
done
exit $failed
