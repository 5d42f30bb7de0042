#!/usr/bin/env bash
# Operators of quantized .tflite models, drawn at random, beside LiteRT's reference kernels: tflite_variations.py.
# Python with ai_edge_litert and flatbuffers: PEERS_PYTHON. TFLITE_VARIATIONS: models for each operator and type.
set -u
python=${PEERS_PYTHON:-}
if ! "${python:-false}" -c 'import ai_edge_litert, flatbuffers, numpy' 2>/dev/null; then
    echo "SKIP tflite_variations: no Python with ai_edge_litert (PEERS_PYTHON names it)"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$python" "${QAT_SOURCE_ROOT:?}/tests/foreign/tflite_variations.py" "${QAT_BUILD_ROOT:?}/tools" "${TFLITE_VARIATIONS:-2}" 2>errors.txt
status=$?
[ $status = 0 ] || grep -v '^INFO' errors.txt >&2
exit $status
