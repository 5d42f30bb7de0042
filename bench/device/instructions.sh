#!/usr/bin/env bash
# What each kernel costs on microcontrollers: instructions for each multiply-add of convolutions and fully connected
# layers, for each value of the others, counted by QEMU, compiled with -O2. Instructions are not cycles.
#
#     QAT_BUILD_ROOT=build QAT_SOURCE_ROOT=. bench/device/instructions.sh [NETWORK...]      of tests/c_source/networks.sh
set -eu
. "${QAT_SOURCE_ROOT:?}/bench/device/count.sh"
cores="cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55 riscv32"
[ $# -gt 0 ] || set -- quickstart resnet20 mobilenet_v1 keyword_state autoencoder

for network; do
    make_network "$network"
    "$tools/qat-export" "$network.qm" net.c >/dev/null
    for core in $cores; do
        count_layers $core -O2 >one.txt
        awk -v core=$core '{ print core, $2, $3, $4 }' one.txt >>all.txt
    done
done

printf '%-20s %12s' kernel work
printf ' %13s' $cores
printf '\n'
awk -v cores="$cores" '
    { work[$2, $1] += $3; instructions[$2, $1] += $4; kinds[$2] = 1 }
    END {
        n = split(cores, core, " ")
        for (kind in kinds) {
            printf "%-20s %12d", kind, work[kind, core[1]]
            for (i = 1; i <= n; i++)
                printf " %13.2f", instructions[kind, core[i]] / work[kind, core[i]]
            print ""
        }
    }' all.txt | sort
