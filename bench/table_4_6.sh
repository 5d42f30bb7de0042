#!/usr/bin/env bash
# Jacob et al., table 4.6 (and the times of 4.4) on this machine: latency of MobileNet SSD with 320 x 320 pixels,
# float and integer, for several depth multipliers and numbers of threads. The time does not depend on the weights, so
# the networks of recipes/paper/face_detection.ini are trained for only one step, on drawn scenes. The table is in
# OUT/results.md. What is finished is not repeated.
# Usage: bench/table_4_6.sh [OUT] [qat-sweep's options...]
set -eu
cd "$(dirname "$0")/.."
tools=${QAT_TOOLS:-build/tools}
out=runs/table_4_6
[ $# = 0 ] || [ "${1#-}" != "$1" ] || { out=$1 && shift; }
exec "$tools/qat-sweep" recipes/paper/face_detection.ini --out "$out" --set model.multiplier=1,0.5,0.25 \
    --set data.kind=scenes --set data.train_count=4 --set data.test_count=2 --set train.batch=2 --set train.eval_batch=1 \
    --set train.steps=1 --set train.stop_patience=0 --verify 1 --bench --columns float_ms_1,float_ms_2,ms_1,ms_2,multiply_adds "$@"
