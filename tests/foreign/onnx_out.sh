#!/usr/bin/env bash
# Models as ONNX files: what qat-export says, and ONNX Runtime's answers beside the engine's, for each committed golden
# operator and for small networks. A Python with onnx and onnxruntime: PEERS_TORCH or PEERS_PYTHON.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
ops=$QAT_SOURCE_ROOT/tests/golden/data/ops

few="--set train.batch=16 --set train.eval_every=never --set quant.enabled=yes --threads 2"
sixty="--set train.steps=60 --set quant.quant_delay=30"
six="--set train.steps=6 --set quant.quant_delay=2 --set quant.bn_freeze_delay=4 --set train.schedule=constant --set train.warmup=0"
samples=${QAT_ONNX_SAMPLES:-200}
only=${QAT_ONNX_ONLY:-} # names of networks, if not all
printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 200\n' >digits.ini
printf '[data]\nkind = shapes\nheight = 32\nwidth = 32\ntrain_count = 400\ntest_count = 200\n' >shapes.ini
printf '[data]\nkind = faces\nheight = 32\ntrain_count = 400\ntest_count = 200\n' >faces.ini
printf '[data]\nkind = scenes\nheight = 64\nwidth = 64\ntrain_count = 200\ntest_count = 200\n' >scenes.ini

compare() { # compare <what> <...>: onnx_out.py
    "$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_out.py" "$tools" "$@" || failed=1
}

wanted() { # wanted <name>
    [ -z "$only" ] || [[ " $only " == *" $1 "* ]]
}

network() { # network <name> <recipe> <even> <limits> <settings...>: a short run in both layouts
    name=$1 recipe=$2 even=$3 limits=$4
    shift 4
    wanted "$name" || return 0
    for layout in uint8 int8; do
        cp "$recipe.ini" "$name-$layout.ini"
        # shellcheck disable=SC2086
        if "$tools/qat-train" "$name-$layout.ini" --out "$name-$layout.run" $few --set quant.layout=$layout "$@" >train.txt 2>&1; then
            compare network "$name-$layout" "$name-$layout.ini" "$samples" "$even" $limits
        elif grep -q 'QAT_DATA' train.txt; then
            echo "SKIP $name: $(tail -n 1 train.txt)"
        else
            not_ok "training of $name-$layout: $(tail -n 1 train.txt)"
        fi
        rm -rf "$name-$layout.run"
    done
}

check "import an operator" "$tools/qat-import" "$ops/add_u8_00/model.tflite" m.qm
refuses "--opset of a .qm" 2 "are of the format onnx" "$tools/qat-export" m.qm n.tflite --opset 13
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
wanted ops && compare ops "$ops"/*_[su]8_*/
# limits of the forms qdq and qoperator: in profile onnx so many quanta; in the others so many, and so many of 100 samples
# with another largest score
# shellcheck disable=SC2086
{
    network convnet digits 0 "3 5" $sixty
    network bits4 digits 0 "4 7" $sixty --set quant.weight_bits=4 --set quant.activation_bits=7
    network resnet20 shapes 0 "4 5" $sixty --set model.arch=resnet20 --set model.width=8
    network mobilenet shapes 0 "30 16" $sixty --set model.arch=mobilenet_v1 --set model.multiplier=0.25 --set train.lr=0.02
    network inception shapes 0 "3 5" $sixty --set model.arch=inception_small
    network attributes faces 0 "4 5" $sixty
    network detector scenes 0 "42 15" $sixty --set model.arch=mobilenet_ssd --set model.multiplier=0.25
}
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
# shellcheck disable=SC2086
network line signals 0 "1 1" $sixty

# recipes, and a network of each layer, in the form integer alone, and in profile onnx in all
export QAT_DATA=${QAT_DATA:-$QAT_SOURCE_ROOT/../shared/data}
for recipe in quickstart fashion_mnist cifar10_resnet20 cifar10_mobilenet cifar10_inception detect_cards segmentation faces keyword_gru keyword_lstm; do
    sed -E '/^(train|test)_count/d; s/^kind = (digits|shapes|scenes|faces|words)\b.*/&\ntrain_count = 64\ntest_count = 200/' \
        "$QAT_SOURCE_ROOT/recipes/$recipe.ini" >"recipe_$recipe.ini"
    # shellcheck disable=SC2086
    network "$recipe" "recipe_$recipe" $([ $recipe = segmentation ] && echo 1 || echo 0) "" $six # it has transposed convolutions
done
printf '[data]\nkind = shapes\ntrain_count = 64\ntest_count = 200\n' >layers.ini
cat "$QAT_SOURCE_ROOT/tests/e2e/data/every_layer.ini" >>layers.ini
# shellcheck disable=SC2086
network every_layer layers 1 "" $six

if wanted random; then
    mkdir random
    check "the property test" env QAT_PROPERTY_KEEP=random "$QAT_BUILD_ROOT/tests/test_property" 20240607 140
    compare random "$samples" random/*.qm
fi
exit $failed
