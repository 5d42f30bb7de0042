#!/usr/bin/env bash
# Models as ONNX files: what qat-export says, and ONNX Runtime's answers beside the engine's, for each committed golden
# operator and for small networks. A Python with onnx and onnxruntime: PEERS_TORCH or PEERS_PYTHON.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
ops=$QAT_SOURCE_ROOT/tests/golden/data/ops

few="--set train.steps=60 --set train.batch=16 --set train.eval_every=never --set quant.enabled=yes --set quant.quant_delay=30 --threads 2"
printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 200\n' >digits.ini
printf '[data]\nkind = shapes\nheight = 32\nwidth = 32\ntrain_count = 400\ntest_count = 200\n' >shapes.ini
printf '[data]\nkind = faces\nheight = 32\ntrain_count = 400\ntest_count = 200\n' >faces.ini
printf '[data]\nkind = scenes\nheight = 64\nwidth = 64\ntrain_count = 200\ntest_count = 200\n' >scenes.ini

network() { # network <name> <data> <limit> <settings...>: a recipe and a short run; at most so many quanta apart
    name=$1 data=$2 limit=$3
    shift 3
    cp "$data.ini" "$name.ini"
    # shellcheck disable=SC2086
    check "training of $name" "$tools/qat-train" "$name.ini" --out "$name.run" $few "$@"
    [ -z "$python" ] || "$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_out.py" "$tools" network "$name" "$name.ini" "$limit" || failed=1
}

check "import an operator" "$tools/qat-import" "$ops/add_u8_00/model.tflite" m.qm
refuses "--opset of a .qm" 2 "are of the format onnx" "$tools/qat-export" m.qm n.tfl --opset 13
"$tools/qat-export" m.qm m.onnx 2>err.txt >out.txt
if grep -q 'without protobuf-c' err.txt; then
    ok "a build without protobuf-c says so"
    exit $failed
fi
has "the file is told" '^m.onnx: [0-9]+ bytes, onnx$' out.txt
check "the format by name" "$tools/qat-export" m.qm other --format onnx
same "twice the same bytes" m.onnx other
refuses "a wrong opset" 2 "13" "$tools/qat-export" m.qm n.onnx --opset 12
refuses "a wrong form" 2 "only qdq, qoperator and integer" "$tools/qat-export" m.qm n.onnx --form int
refuses "--form of a .tflite" 2 "are of the format onnx" "$tools/qat-export" m.qm n.tflite --form qdq

for python in "${PEERS_TORCH:-}/bin/python" "${PEERS_PYTHON:-}" "${PEERS_PYTHON:-}/bin/python" "${QAT_PYTHON:-}" python3; do
    [ -n "$python" ] && "$python" -c 'import onnx, onnxruntime' 2>/dev/null && break
    python=
done
if [ -z "$python" ]; then
    echo "SKIP onnx_out: no Python with onnx and onnxruntime (PEERS_TORCH names its environment)"
    exit $failed
fi
"$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_out.py" "$tools" ops "$ops"/*_[su]8_*/ || failed=1
network convnet digits 4
network convnet_int8 digits 4 --set quant.layout=int8 --set quant.weight_bits=4 --set quant.activation_bits=7
network resnet20 shapes 8 --set model.arch=resnet20 --set model.width=8
network mobilenet shapes 60 --set model.arch=mobilenet_v1 --set model.multiplier=0.25 --set quant.layout=int8 --set train.lr=0.02
network inception shapes 4 --set model.arch=inception_small
network attributes faces 4 --set quant.layout=int8
network detector scenes 60 --set model.arch=mobilenet_ssd --set model.multiplier=0.25
"$python" -c '
import numpy as np, os
os.makedirs("signals")
for part, n in ("train", 400), ("test", 200):
    y = np.arange(n) % 4
    x = np.sin(np.arange(64) * (y + 1)[:, None] / 4 + np.random.RandomState(n).rand(n, 1)) * 100
    np.save(f"signals/{part}_x.npy", x.astype("float32").reshape(n, 1, 64, 1))
    np.save(f"signals/{part}_y.npy", y.astype("uint8"))'
cat >signals.ini <<'END'
[data]
kind = npy
path = signals
mean = 0
std = 70
[model]
arch = layers
[layer.c1]
op = conv2d
filters = 8
kernel = 1
kernel_w = 5
stride = 1
stride_w = 2
[layer.r1]
op = relu
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 4
END
network line signals 4
exit $failed
