#!/usr/bin/env bash
# The networks of MLPerf Tiny as C source beside CMSIS-NN: instructions on emulated processors, by kind of layer. Ours are
# compiled with -O3, CMSIS-NN's with -Ofast, as its authors do. PEERS has the program that runs CMSIS-NN's kernels
# (run.sh, gen_net.py ..), PYTHON has numpy and ai-edge-litert. Instructions are not cycles.
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

theirs() { # theirs <core>: lines of network, kind, instructions
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
    if run["engine"] == "cmsis-nn":
        for kind, count in run["kinds"].items():
            print(run["model"], kind, count["instructions"])' "$1.json"
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
printf '%-14s %-38s %-16s %10s %10s %6s\n' core network kind ours CMSIS-NN ratio
for core; do
    theirs "$core" >theirs.txt
    ours "$core" >ours.txt
    awk -v core="$core" '
        function line(model, kind, a, b) {
            printf "%-14s %-38s %-16s %10d %10d %6s\n", core, model, kind, a, b, b ? sprintf("%.2f", a / b) : "-"
        }
        NR == FNR { their[$1, $2] = $3; next }
        !($1 in seen) { seen[$1] = 1; models[++n] = $1 }
        !($2 in known) { known[$2] = 1; kinds[++k] = $2 }
        { our[$1, $2] = $3; a[$1] += $3; b[$1] += their[$1, $2]; ka[$2] += $3; kb[$2] += their[$1, $2] }
        END {
            for (i = 1; i <= n; i++) {
                for (j = 1; j <= k; j++)
                    if ((models[i], kinds[j]) in our)
                        line(models[i], kinds[j], our[models[i], kinds[j]], their[models[i], kinds[j]])
                line(models[i], "all", a[models[i]], b[models[i]])
            }
            for (j = 1; j <= k; j++)
                line("all", kinds[j], ka[kinds[j]], kb[kinds[j]])
        }' theirs.txt ours.txt
done
