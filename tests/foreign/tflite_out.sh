#!/usr/bin/env bash
# .tflite files of networks that are trained for a few steps here, and of random networks, beside LiteRT: its reference
# kernels give the engine's bytes; how many bytes its faster kernels give otherwise is printed. Where Python has LiteRT:
#     python3 -m venv venv && venv/bin/pip install ai-edge-litert
#     PEERS_PYTHON=venv/bin/python meson test -C build tflite_out
# PEERS_TFLM names a Python with TensorFlow Lite Micro, which is not judged but for models of profile paper and layout int8:
#     python3 -m venv micro && micro/bin/pip install --pre tflite-micro
# QAT_TFLITE_ONLY='^(quickstart|random)$' runs some of the networks, QAT_TFLITE_SAMPLES=20 fewer samples.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
source=${QAT_SOURCE_ROOT:?}
python=${PEERS_PYTHON:-python3}
export QAT_DATA=${QAT_DATA:-$source/../shared/data}
if ! "$python" -c 'import ai_edge_litert' 2>/dev/null; then
    echo "SKIP .tflite files in LiteRT: $python has no ai_edge_litert (PEERS_PYTHON names another Python)"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
samples=${QAT_TFLITE_SAMPLES:-200}
only=${QAT_TFLITE_ONLY:-.}
few="--set train.steps=6 --set train.batch=8 --set train.schedule=constant --set train.warmup=0 --set train.eval_every=6
    --set train.log_every=6 --set train.checkpoint_every=6 --set train.eval_batch=8 --threads 2
    --set quant.enabled=yes --set quant.quant_delay=2 --set quant.bn_freeze_delay=4"
failed=0
count=0

network() { # network <name> <recipe> <settings...>: <name>.qm and <name>.tflite, of uint8 and of int8
    name=$1 recipe=$2
    shift 2
    [[ $name =~ $only ]] || return
    for layout in ${layouts:-uint8 int8}; do
        # shellcheck disable=SC2086
        if ! "$tools/qat-train" "$recipe" --out "run-$name" $few --set quant.layout=$layout "$@" >train.txt 2>&1; then
            said=$(grep -m 1 "^qat-train:" train.txt)
            case $said in
            *QAT_DATA*) echo "SKIP $name: $said" ;;
            *) echo "not ok - training of $name-$layout: $said" && failed=$((failed + 1)) ;;
            esac
            return
        fi
        rm -f "$name-$layout".* "$name-paper".*
        "$tools/qat-export" "run-$name/last.ckpt" "$name-$layout.qm" --profile tflite --samples 8 >export.txt 2>&1 &&
            "$tools/qat-export" "$name-$layout.qm" "$name-$layout.tflite" >again.txt 2>&1 &&
            "$tools/qat-export" "run-$name/last.ckpt" checkpoint.tflite --samples 8 >export.txt 2>&1
        if ! [ -f "$name-$layout.tflite" ] || ! cmp "$name-$layout.tflite" checkpoint.tflite || grep -q warning again.txt; then
            echo "not ok - $name-$layout: $(cat again.txt export.txt | tail -n 2)"
            failed=$((failed + 1))
            continue
        fi
        if [ $layout = int8 ] && [ -n "${PEERS_TFLM:-}" ]; then
            "$tools/qat-export" "run-$name/last.ckpt" "$name-paper.qm" --profile paper --samples 8 >export.txt 2>&1 &&
                "$tools/qat-export" "$name-paper.qm" "$name-paper.tflite" >again.txt 2>&1 ||
                { echo "not ok - $name-paper: $(cat again.txt export.txt | tail -n 2)"; failed=$((failed + 1)); }
        fi
        for model in "$name-$layout" "$name-paper"; do
            [ -f "$model.tflite" ] || continue
            "$python" "$source/tests/foreign/tflite_compare.py" "$tools/qat-run" "$samples" "$model" 2>stderr.txt ||
                { failed=$((failed + 1)); tail -n 3 stderr.txt; }
        done
        count=$((count + 1))
        rm -rf "run-$name" checkpoint.tflite
    done
}

recipes=$source/recipes
for recipe in quickstart fashion_mnist cifar10_resnet20 cifar10_mobilenet cifar10_inception detect_cards faces keyword_gru keyword_lstm; do
    sed -E '/^(train|test)_count/d; s/^kind = (digits|shapes|scenes|faces|words)\b.*/&\ntrain_count = 64\ntest_count = 32/' \
        "$recipes/$recipe.ini" >"$recipe.ini"
    network "$recipe" "$recipe.ini"
done
layouts=int8
network bits4_full quickstart.ini --set quant.weight_bits=4 --set quant.weight_ranges=tqt_full # their lowest code is -8
network wide quickstart.ini --set quant.profile=tflite --set quant.activation_bits=16
network wide_mobilenet cifar10_mobilenet.ini --set quant.profile=tflite --set quant.activation_bits=16
network wide_gru keyword_gru.ini --set quant.profile=tflite --set quant.activation_bits=16
unset layouts
network bits4 quickstart.ini --set quant.weight_bits=4 --set quant.activation_bits=6
printf '[data]\nkind = shapes\ntrain_count = 64\ntest_count = 32\n' >layers.ini
cat "$source/tests/e2e/data/every_layer.ini" >>layers.ini
network layers layers.ini
mkdir signals
"$python" -c 'import numpy as np
for name in "train", "test":
    x = np.random.default_rng(len(name)).normal(size=(64, 1, 40, 3)).astype(np.float32)
    np.save(f"signals/{name}_x.npy", x)
    np.save(f"signals/{name}_y.npy", (x[:, 0, :, 0].sum(1) > 0).astype(np.uint8))'
cat >one_dimension.ini <<END
[data]
kind = npy
path = $work/signals
[model]
arch = layers
[layer.conv]
op = conv2d
filters = 8
kernel = 1
kernel_w = 5
activation = relu
[layer.half]
op = conv2d
filters = 8
kernel = 1
kernel_w = 3
stride_w = 2
activation = relu6
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 2
bias = yes
END
network one_dimension one_dimension.ini

# a hundred networks of the property test, of profile tflite
mkdir random
drawn=0
if ! [[ random =~ $only ]]; then
    :
elif QAT_PROPERTY_KEEP=$work/random QAT_PROPERTY_DIR=$work "$QAT_BUILD_ROOT/tests/test_property" 20240607 300 >random.txt 2>&1; then
    # shellcheck disable=SC2012
    (cd random && "$python" "$source/tests/foreign/tflite_compare.py" "$tools/qat-run" "$samples" $(ls ./*.tflite | sed 's/\.tflite$//') 2>stderr.txt) >random.txt ||
        failed=$((failed + 1))
    grep -v '^ok\|^#' random.txt
    awk '/^ok/ { gsub(",", ""); for (i = 1; i < NF; i++) n[$i] += $(i + 1); m++; bytes += $6 }
        END { print m " random networks, " bytes " bytes, differing: reference " n["reference"] ", optimized " n["optimized"] ", XNNPACK " n["XNNPACK"] }' random.txt
    drawn=$(grep -c '^ok' random.txt)
    [ "$drawn" -ge 100 ] || { echo "not ok - fewer than 100 random networks"; failed=$((failed + 1)); }
else
    echo "not ok - the property test: $(tail -n 3 random.txt)"
    failed=$((failed + 1))
fi
echo "$count networks of recipes, $failed failures"
[ "$failed" = 0 ] && [ $((count + drawn)) -gt 0 ]
