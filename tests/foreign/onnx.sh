#!/usr/bin/env bash
# Networks from ONNX files: the tests of the ONNX project (Debian: libonnx-testdata), networks of torchvision, and what is
# refused. Python with torch, torchvision and onnx: PEERS_TORCH or PEERS_PYTHON.
set -u
compare=$(realpath "$1")
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
archive=${ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}

printf '[data]\nkind = shapes\ntrain_count = 20\ntest_count = 20\n[train]\nbatch = 4\n[model]\nonnx = none.onnx\n' >none.ini
if "$tools/qat-train" none.ini --dry-run 2>&1 | grep -q 'without protobuf-c'; then
    echo "SKIP onnx: this build has no protobuf-c (Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)"
    exit $failed
fi
refuses "no such file" 1 "none.onnx" "$tools/qat-train" none.ini --dry-run
printf 'no model' >none.onnx
refuses "not an ONNX file" 1 "not an ONNX file" "$tools/qat-train" none.ini --dry-run
refuses "a network's name beside a file" 2 "cannot be combined" "$tools/qat-train" none.ini --set model.arch=mlp --dry-run
refuses "a strange head" 2 "expected average, flatten, or a number" "$tools/qat-train" none.ini --set model.head=many --dry-run

# ---------------------------------------------------------------- the tests of the ONNX project
if [ -d "$archive" ]; then
    "$compare" "$archive"/*/* >nodes.txt 2>&1
    total=$(find "$archive" -name model.onnx | wc -l)
    good=$(grep -c '^ok ' nodes.txt) refused=$(grep -c '^refused ' nodes.txt) parsed=$(grep -c '^parsed ' nodes.txt)
    # Dropout in training gives random numbers of NumPy; floats of 16 bits are float32 here.
    bad=$(grep '^differs ' nodes.txt | grep -vE ' test_(training_dropout|cast(like)?_[A-Z]*_to_FLOAT16)')
    exact=$(grep -c '^exact ' nodes.txt)
    if [ $((good + refused + parsed + exact)) -ge $((total - 4)) ] && [ "$good" -ge 210 ] && [ -z "$bad" ]; then
        ok "of $total models $good have the archive's answers within 1e-5, $exact quantized ones exactly, $refused are refused, $parsed have no floats to compare"
    else
        not_ok "of $total models $good are right, $refused refused, $parsed parsed: $bad"
    fi
    if [ "$exact" -ge 4 ]; then ok "quantized operators are exact: $(sed -n 's/^exact test_\([^:]*\).*/\1/p' nodes.txt | tr '\n' ' ')"
    else not_ok "of the quantized operators $exact are exact"; fi
    # What is refused of the operators that are taken, with the reason: how often, operator, sentence with N for numbers.
    taken="Conv|ConvTranspose|Gemm|MatMul|BatchNormalization|Relu|Clip|LeakyRelu|PRelu|HardSwish|HardSigmoid|Sigmoid|Tanh|Softmax"
    taken="$taken|Add|Sub|Mul|Div|Neg|Concat|Split|Slice|Gather|Pad|MaxPool|AveragePool|GlobalAveragePool|GlobalMaxPool|ReduceMean"
    taken="$taken|Flatten|Reshape|Transpose|Resize|Squeeze|Unsqueeze|Dropout|Identity|QLinearConv|QLinearMatMul|QLinearAdd"
    taken="$taken|QuantizeLinear|DequantizeLinear"
    sed -nE "s/^refused [^:]*: .*\\((($taken)\\): .*)/\\1/p; s/^refused [^:]*: (an input of [0-9]+ dim.*)/network) \\1/p" nodes.txt |
        sed -E "s/'[^']*'/X/g; s/[0-9.]+/N/g; s/\\)//" | sort | uniq -c | sort -rn >reasons.txt
    ok "of the operators that are taken $(awk '{ n += $1 } END { print n + 0 }' reasons.txt) tests are refused, for $(wc -l <reasons.txt) reasons:"
    sed 's/^/     /' reasons.txt
    mute=$(grep '^refused ' nodes.txt | grep -vE '^refused [^:]*: .{12}' | head -n 3)
    if [ -z "$mute" ]; then ok "each that is refused has a sentence"; else not_ok "without a sentence: $mute"; fi
else
    echo "SKIP onnx tests: no $archive (Debian: libonnx-testdata)"
fi

# ---------------------------------------------------------------- networks
for python in "${PEERS_TORCH:-}/bin/python" "${PEERS_PYTHON:-}" "${QAT_PYTHON:-}" python3; do
    [ -n "$python" ] && "$python" -c 'import torch, torchvision, onnx' 2>/dev/null && break
    python=
done
if [ -n "$python" ]; then
    "$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_networks.py" "$tools" "$compare" ${ONNX_NETWORKS:-resnet18 shufflenet_v2_x1_0} || failed=1
else
    echo "SKIP onnx networks: no Python with torch, torchvision and onnx (PEERS_TORCH names its environment)"
fi
exit $failed
