#!/usr/bin/env bash
# Jacob et al., figures 1.1c, 4.1 and 4.2, on CIFAR-10: latency against top-1 of MobileNet v1 over depth
# multipliers and resolutions, float and integer only, with one thread and with two. A table in OUT/results.md,
# plots in OUT/plot-*.png and .svg. What is finished is not repeated. docs/sweeping.md says more.
# Usage: bench/latency.sh [OUT] [--epochs N] [--seeds N] [--jobs N] [--table] [qat-sweep's options...]
set -eu
cd "$(dirname "$0")/.."
tools=${QAT_TOOLS:-build/tools}
out=runs/latency epochs=20 options=()
[ $# = 0 ] || [ "${1#-}" != "$1" ] || { out=$1 && shift; }
while [ $# -gt 0 ]; do
    case $1 in
    --epochs) epochs=${2:?} && shift ;;
    *) options+=("$1") ;;
    esac
    shift
done
curves() { # curves <threads>
    echo "log:ms_$1,top1@quant.enabled=yes+float_ms_$1,float_top1@quant.enabled=no/model.multiplier"
}
exec "$tools/qat-sweep" recipes/cifar10_mobilenet.ini --out "$out" --set quant.enabled=no,yes \
    --set model.multiplier=0.25,0.5,1 --set data.height=16,24,32 --set "train.epochs=$epochs" --bench \
    --columns top1,float_top1,ms_1,ms_2,float_ms_1,float_ms_2,multiply_adds \
    --plot "$(curves 1)" --plot "$(curves 2)" "${options[@]}"
