#!/usr/bin/env bash
# The networks of MLPerf Tiny beside CMSIS-NN: instructions on emulated processors, by kind of layer. Ours are the C source,
# and the engine that reads a .qm and looks up what each layer needs in every run; CMSIS-NN's layers are called by C
# source, too. Ours are compiled with -O3, CMSIS-NN's with -Ofast, as its authors do. PEERS has the program that runs
# CMSIS-NN's kernels and the engine (run.sh, gen_net.py ..), PYTHON has numpy and ai-edge-litert. Instructions are not
# cycles.
#
#     QAT_BUILD_ROOT=build QAT_SOURCE_ROOT=. QAT_DATA=.. PEERS=.. PYTHON=.. bench/device/cmsis_nn.sh [CORE...]
#     CORE: cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55
set -eu
PEERS=$(realpath "${PEERS:?}")
. "${QAT_SOURCE_ROOT:?}/bench/device/count.sh"
mkdir models
for network in $imported_networks; do
    ln -s "$(realpath "$zoo/$(file_of "$network").tflite")" models/
done
# the peers' program knows no Cortex-M0+; a Cortex-M3 executes its instructions
mkdir peers
cp -r "$PEERS/." peers
sed -i 's/^cortex-m3) machine/cortex-m3 | cortex-m0plus) machine/; s/arm-none-eabi-gcc \$target/arm-none-eabi-gcc -masm-syntax-unified $target/' peers/run.sh

theirs() { # theirs <core>: lines of network, kind, who, instructions
    float=soft
    [ "$1" != cortex-m55 ] || float=hard
    sed "s/cortex-m4/$1/g; s/float-abi=soft/float-abi=$float/g" "$QAT_SOURCE_ROOT/cross/cortex-m4.ini" >core.ini
    { meson setup "engine-$1" "$QAT_SOURCE_ROOT" --cross-file core.ini -Dtraining=false -Dbuildtype=release && ninja -C "engine-$1"; } >build.txt 2>&1 ||
        { tail -n 5 build.txt >&2 && return 1; }
    CPU=$1 KINDS=1 WORK=$work/run-$1 sh peers/run.sh "$QAT_BUILD_ROOT" "engine-$1" models >"$1.json"
    "${PYTHON:-python3}" -c '
import json, sys
for line in open(sys.argv[1]):
    run = json.loads(line)
    for kind, count in run["kinds"].items():
        print(run["model"], kind, run["engine"], count["instructions"])' "$1.json"
}

ours() { # ours <core>
    for network in $imported_networks; do
        "$tools/qat-import" "models/$(file_of "$network").tflite" net.qm >said.txt
        "$tools/qat-export" net.qm net.c >said.txt
        count_layers "$1" -O3 >one.txt
        awk -v model="$(file_of "$network")" '{
            kind = $2
            sub(/conv2d_k_x_k/, "conv_kxk", kind); sub(/^conv2d_1x1/, "conv_1x1", kind)
            sub(/depthwise_conv2d/, "depthwise", kind); sub(/_pool2d/, "_pool", kind)
            sum[kind] += $4
        } END { for (kind in sum) print model, kind, sum[kind] }' one.txt
    done
}

[ $# -gt 0 ] || set -- cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55
printf '%-14s %-38s %-16s %10s %10s %10s %8s %6s\n' core network kind CMSIS-NN 'C source' 'a .qm' 'C source' 'a .qm'
for core; do
    theirs "$core" >theirs.txt
    ours "$core" >ours.txt
    awk -v core="$core" '
        function ratio(a, b) {
            return b ? sprintf("%.2f", a / b) : "-"
        }
        function line(model, kind, cmsis, source, qm) {
            printf "%-14s %-38s %-16s %10d %10d %10d %8s %6s\n", core, model, kind, cmsis, source, qm, ratio(source, cmsis), ratio(qm, cmsis)
        }
        function count(model, kind, who, instructions) {
            number[model, kind, who] += instructions
            number[model, "all", who] += instructions
            number["all", kind, who] += instructions
        }
        function lines(model, kind) {
            if ((model, kind, "source") in number)
                line(model, kind, number[model, kind, "cmsis-nn"], number[model, kind, "source"], number[model, kind, "qat"])
        }
        NR == FNR { count($1, $2, $3, $4); next }
        !($1 in seen) { seen[$1] = 1; models[++n] = $1 }
        !($2 in known) { known[$2] = 1; kinds[++k] = $2 }
        { count($1, $2, "source", $3) }
        END {
            for (i = 1; i <= n; i++) {
                for (j = 1; j <= k; j++) lines(models[i], kinds[j])
                lines(models[i], "all")
            }
            for (j = 1; j <= k; j++) lines("all", kinds[j])
        }' theirs.txt ours.txt
done
