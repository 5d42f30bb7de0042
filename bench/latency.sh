#!/usr/bin/env bash
# Jacob et al., figures 1.1c, 4.1 and 4.2, on CIFAR-10: latency against top-1 of MobileNet v1 for several depth
# multipliers and resolutions, float and integer, with one thread and with two. With --faces it makes figure 4.3 with
# drawn faces: latency against category average precision. The table is in OUT/results.md, the plots in OUT/plot-*.png
# and .svg. What is finished is not repeated. docs/sweeping.md says more.
# Usage: bench/latency.sh [OUT] [--faces] [--epochs N] [--seeds N] [--jobs N] [--table] [qat-sweep's options...]
set -eu
cd "$(dirname "$0")/.."
tools=${QAT_TOOLS:-build/tools}
out='' epochs='' name=latency recipe=recipes/cifar10_mobilenet.ini usual=20 heights=16,24,32 figure=top1 also='' options=()
[ $# = 0 ] || [ "${1#-}" != "$1" ] || { out=$1 && shift; }
while [ $# -gt 0 ]; do
    case $1 in
    --faces) name=latency_faces recipe=recipes/faces_mobilenet.ini usual=16 heights=32,48,64 figure=category_ap also=within,float_within, ;;
    --epochs) epochs=${2:?} && shift ;;
    *) options+=("$1") ;;
    esac
    shift
done
curves() { # curves <threads>
    echo "log:ms_$1,$figure@quant.enabled=yes+float_ms_$1,float_$figure@quant.enabled=no/model.multiplier"
}
exec "$tools/qat-sweep" "$recipe" --out "${out:-runs/$name}" --set quant.enabled=no,yes \
    --set model.multiplier=0.25,0.5,1 --set "data.height=$heights" --set "train.epochs=${epochs:-$usual}" --bench \
    --columns "$figure,float_$figure,${also}ms_1,ms_2,float_ms_1,float_ms_2,multiply_adds" \
    --plot "$(curves 1)" --plot "$(curves 2)" "${options[@]}"
