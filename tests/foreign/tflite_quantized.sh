#!/usr/bin/env bash
# Quantized networks of Keras beside LiteRT's reference kernels: tflite_quantized.py.
# Python with tensorflow and ai_edge_litert: PEERS_PYTHON.
set -u
python=${PEERS_PYTHON:-}
if ! "${python:-false}" -c 'import ai_edge_litert, tensorflow' 2>/dev/null; then
    echo "SKIP tflite_quantized: no Python with tensorflow and ai_edge_litert (PEERS_PYTHON names it)"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$python" "${QAT_SOURCE_ROOT:?}/tests/foreign/tflite_quantized.py" "${QAT_BUILD_ROOT:?}/tools" 2>errors.txt
status=$?
[ $status = 0 ] || tail -n 5 errors.txt >&2
exit $status
