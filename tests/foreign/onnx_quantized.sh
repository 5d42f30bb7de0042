#!/usr/bin/env bash
# Quantized ONNX graphs through qat-import, beside ONNX Runtime: single operators, small networks that quantize_static
# quantizes, and, by name, networks of torchvision. Needs a Python with torch, onnx and onnxruntime: PEERS_TORCH.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

printf 'no model' >none.onnx
if "$tools/qat-import" none.onnx m.qm 2>&1 | grep -q 'without protobuf-c'; then
    echo "SKIP onnx_quantized: this build has no protobuf-c (Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)"
    exit $failed
fi
refuses "not an ONNX file" 1 "none.onnx: the model: not an ONNX file, or it is cut off" "$tools/qat-import" none.onnx m.qm
: >empty.onnx
refuses "a file without a graph" 1 "it has no graph" "$tools/qat-import" empty.onnx m.qm
check "nothing is written" test ! -e m.qm

python=${PEERS_TORCH:-}/bin/python
if "$python" -c 'import torch, onnx, onnxruntime' 2>/dev/null; then
    # shellcheck disable=SC2086
    "$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_quantized.py" "$tools" ${ONNX_NETWORKS:-} 2>log.txt || { tail -n 5 log.txt; failed=1; }
else
    echo "SKIP onnx_quantized: no Python with torch, onnx and onnxruntime (PEERS_TORCH names its environment)"
fi
exit $failed
