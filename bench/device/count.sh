# shellcheck shell=bash
# Sourced by instructions.sh and cmsis_nn.sh: counts the instructions of each layer of a network as C source. Changes to a
# folder that is removed at the end.
QAT_BUILD_ROOT=$(realpath "${QAT_BUILD_ROOT:?}") QAT_SOURCE_ROOT=$(realpath "${QAT_SOURCE_ROOT:?}")
tools=$QAT_BUILD_ROOT/tools here=$QAT_SOURCE_ROOT/bench/device
. "$QAT_SOURCE_ROOT/tests/c_source/networks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# count_layers <core> <optimization>: of net.c in this folder, lines of layer, kind, work, instructions (layers.awk)
count_layers() {
    local core=$1 more= quarters=160 # a tick of SysTick is 40 instructions at 25 MHz, 31.25 at 32 MHz
    case $core in
    cortex-m55) quarters=125 more="-D'NET_SECTION=__attribute__((section(\".more\")))'" ;;
    riscv32) more=-march=rv32imc_zicsr ;; # to read the counter
    esac
    awk -f "$here/layers.awk" net.c | sort -n >layers.txt
    rm -f run.elf
    echo 'typedef int nothing;' >none.c
    make -s -f "$QAT_SOURCE_ROOT/examples/$core/Makefile" run NET=none.c MAIN="$here/instructions.c" OUT=run.elf \
        CFLAGS="$2 -I. -I$here -DQUARTERS_PER_TICK=$quarters $more" QEMU_FLAGS="-icount shift=0" </dev/null >said.txt 2>&1 || {
        tail -n 5 said.txt >&2
        return 1
    }
    sed -n 's/^layer //p' said.txt | sort -n >counts.txt
    if [ "$(wc -l <counts.txt)" != "$(wc -l <layers.txt)" ]; then
        tail -n 3 said.txt >&2
        return 1
    fi
    paste -d ' ' layers.txt counts.txt | cut -d ' ' -f 1-3,5
}
