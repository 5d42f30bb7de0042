#!/usr/bin/env bash
# Compares this engine with other systems: MobileNet v1 0.25/128, 0.5/160 and 1.0/224 on 1 and 2 threads, one picture
# a run, against LiteRT and ONNX Runtime, float and int8. Prints one table and writes its figures as JSON beside it.
# It takes some minutes, and needs a quiet machine.
#
#   bench/peers/run.sh [--rounds N] [--isa NAME] [--json FILE]
#
# Rounds go over all systems in turn, each measurement in a process of its own; the smallest time of all
# rounds counts. Needs a build with -Dbench=true, and a Python with LiteRT and ONNX Runtime (and, to make
# the models, TensorFlow and onnx); nothing else in this repository does.
#
#   PEERS_PYTHON   that Python                          python3
#   PEERS_SCRIPTS  the scripts that time the peers      ../shared/peers
#   PEERS_MODELS   the models, made if missing          build/peers
#   QAT_BUILD      the build                            build
set -eu
cd "$(dirname "$0")/../.."
export PEERS_PYTHON=${PEERS_PYTHON:-python3}
export PEERS_SCRIPTS=${PEERS_SCRIPTS:-../shared/peers}
export PEERS_MODELS=${PEERS_MODELS:-build/peers}
export QAT_BUILD=${QAT_BUILD:-build}
unset OMP_WAIT_POLICY GOMP_SPINCOUNT # latency: threads may spin

die() {
    echo "bench/peers/run.sh: $1" >&2
    exit 1
}

[ -x "$QAT_BUILD/bench/bench_float_forward" ] || die "$QAT_BUILD: no build with -Dbench=true"
[ -f "$PEERS_SCRIPTS/infer_ort.py" ] || die "$PEERS_SCRIPTS: no scripts to time the peers with"
"$PEERS_PYTHON" -c 'import ai_edge_litert, onnxruntime' 2>/dev/null ||
    die "$PEERS_PYTHON has no ai_edge_litert or no onnxruntime; set PEERS_PYTHON"

mkdir -p "$PEERS_MODELS"
for size in 0.25_128 0.5_160 1.0_224; do
    stem=$PEERS_MODELS/mobilenet_v1_$size
    for kind in float.tflite int8.tflite float.onnx qdq.onnx; do
        [ -f "${stem}_$kind" ] && continue
        "$PEERS_PYTHON" "$PEERS_SCRIPTS/make_models.py" "$PEERS_MODELS" --sizes "$size" >&2
        [ -f "${stem}_$kind" ] || die "$PEERS_SCRIPTS/make_models.py does not make ${stem}_$kind"
    done
    "$QAT_BUILD/tools/qat-import" "${stem}_int8.tflite" "$QAT_BUILD/mobilenet_v1_$size.qm" >/dev/null
done
exec "$PEERS_PYTHON" bench/peers/compare.py "$@"
