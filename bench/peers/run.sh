#!/usr/bin/env bash
# Compares this engine with other systems: nine networks (networks.py has their names) on 1 and 2 threads, one picture
# a run, against the best of LiteRT and ONNX Runtime, float and int8. Prints one table, the smallest ratio, the geometric
# mean, and whether the bounds are kept: no cell below 1, and the mean that compare.py has. Writes its figures as JSON
# beside it, and ends with 1 if a bound is broken. It takes half an hour, and needs a quiet machine.
#
#   bench/peers/run.sh [--nets NAME,...] [--threads N,...] [--rounds N] [--isa NAME] [--json FILE]
#
# Rounds go over all systems in turn, each measurement in a process of its own; the smallest time of all
# rounds counts. Needs a build with -Dbench=true, and a Python with LiteRT and ONNX Runtime (and, to make
# the models, TensorFlow and onnx, and for ONNX Runtime's PyTorch, torchvision, onnxscript, which may be in another
# Python); nothing else in this repository does. What cannot be made is left out, with a sentence.
#
#   PEERS_PYTHON   that Python                              python3
#   PEERS_TORCH    the Python with PyTorch                  PEERS_PYTHON
#   PEERS_SCRIPTS  the scripts that time the peers          ../shared/peers
#   PEERS_MODELS   the models, made if missing              build/peers
#   QAT_BUILD      the build                                build
set -eu
cd "$(dirname "$0")/../.."
export PEERS_PYTHON=${PEERS_PYTHON:-python3}
export PEERS_TORCH=${PEERS_TORCH:-$PEERS_PYTHON}
export PEERS_SCRIPTS=${PEERS_SCRIPTS:-../shared/peers}
export QAT_BUILD=${QAT_BUILD:-build}
export PEERS_MODELS=${PEERS_MODELS:-$QAT_BUILD/peers}

die() {
    echo "bench/peers/run.sh: $1" >&2
    exit 1
}

[ -x "$QAT_BUILD/bench/bench_float_forward" ] || die "$QAT_BUILD: no build with -Dbench=true"
[ -f "$PEERS_SCRIPTS/infer_ort.py" ] || die "$PEERS_SCRIPTS: no scripts to time the peers with"
"$PEERS_PYTHON" -c 'import ai_edge_litert, onnxruntime' 2>/dev/null ||
    die "$PEERS_PYTHON has no ai_edge_litert or no onnxruntime; set PEERS_PYTHON"

exec "$PEERS_PYTHON" -B bench/peers/compare.py "$@"
