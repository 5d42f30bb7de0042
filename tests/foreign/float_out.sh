#!/usr/bin/env bash
# Float networks as .tflite and .onnx files, beside LiteRT and ONNX Runtime: each answer within 1e-5 of the largest one. (The
# detector, whose 40 layers amplify roundings after so few steps: 5e-5.) And their parameters as .npz files, through NumPy.
#     float_out.sh FLOAT_OUTPUTS     the program of float_outputs.c
# PEERS_PYTHON names a Python with ai_edge_litert, PEERS_TORCH an environment with onnxruntime; without both it is skipped.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
source=${QAT_SOURCE_ROOT:?}
export QAT_DATA=${QAT_DATA:-$source/../shared/data}
outputs=$(realpath "$1")
lite=${PEERS_PYTHON:-python3}
onnx=${PEERS_TORCH:+$PEERS_TORCH/bin/python}
onnx=${onnx:-$lite}
"$lite" -c 'import ai_edge_litert' 2>/dev/null || { echo "SKIP .tflite of floats: $lite has no ai_edge_litert"; lite=; }
"$onnx" -c 'import onnxruntime' 2>/dev/null || { echo "SKIP .onnx of floats: $onnx has no onnxruntime"; onnx=; }
[ -n "$lite$onnx" ] || exit 0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
few="--set train.steps=3 --set train.batch=8 --set train.schedule=constant --set train.warmup=0 --set train.eval_every=never
    --set train.checkpoint_every=3 --threads 2 --set quant.enabled=no"
failed=0
limit=1e-5
steps=1

network() { # network <name> <settings...>: <name>.ini as float files
    name=$1
    shift
    # shellcheck disable=SC2086
    if ! "$tools/qat-train" "$name.ini" --out "$name.run" $few "$@" >train.txt 2>&1; then
        echo "not ok - $name: $(grep -m 1 "^qat-train:" train.txt)"
        failed=1
        return
    fi
    if "$tools/qat-export" --float "$name.run/last.ckpt" "$name.npz" >/dev/null 2>err.txt &&
        "${lite:-$onnx}" -c 'import numpy, sys; numpy.savez("numpy.npz", **numpy.load(sys.argv[1]))' "$name.npz" 2>>err.txt &&
        "$tools/qat-train" "$name.ini" --out again.run --overwrite --init numpy.npz --set train.epochs=0 --set quant.enabled=no \
            --set train.batch=8 --threads 2 "$@" >/dev/null 2>>err.txt &&
        "$tools/qat-export" --float again.run/last.ckpt again.npz >/dev/null 2>>err.txt && cmp "$name.npz" again.npz 2>>err.txt; then
        echo "ok - $name.npz: NumPy reads and writes it, and a run that begins with it has the same parameters"
    else
        echo "not ok - $name.npz: $(cat err.txt)"
        failed=1
    fi
    for format in ${lite:+tflite} ${onnx:+onnx}; do
        python=$lite
        [ $format = onnx ] && python=$onnx
        if "$tools/qat-export" --float "$name.run/last.ckpt" "$name.$format" >/dev/null 2>err.txt; then
            "$python" "$source/tests/foreign/float_out.py" "$outputs" "$name.run/last.ckpt" "$name.$format" "$limit" "$steps" || failed=1
        else
            echo "not ok - $name.$format: $(cat err.txt)"
            failed=1
        fi
    done
}

# the data are drawn; only the networks count
drawn() { # drawn <kind>: the recipe's [data]
    printf '[data]\nkind = %s\ntrain_count = 32\ntest_count = 16\n' "$1"
}
for recipe in quickstart detect_cards faces; do
    sed -E '/^(train|test)_count/d; s/^kind = .*/&\ntrain_count = 32\ntest_count = 16/' "$source/recipes/$recipe.ini" >$recipe.ini
    [ $recipe = detect_cards ] && limit=5e-5
    network $recipe
    limit=1e-5
done
steps=24
for recipe in keyword_gru keyword_lstm; do
    sed 's/^train_count.*/train_count = 32/; s/^test_count.*/test_count = 16/' "$source/recipes/$recipe.ini" >$recipe.ini
    network $recipe
done
steps=1
for arch in resnet20 mobilenet_v1 mobilenet_v2 inception_small; do
    { drawn shapes; printf 'height = 64\nwidth = 64\n[model]\narch = %s\n' $arch; } >$arch.ini
    network $arch
done
for activation in logistic tanh hard_swish silu gelu relu1 hard_tanh; do
    { drawn digits; printf '[model]\narch = convnet\nactivation = %s\n' $activation; } >$activation.ini
    network $activation
done
{ drawn shapes; cat "$source/tests/e2e/data/every_layer.ini"; } >layers.ini
network layers
{
    drawn shapes
    printf 'height = 22\nwidth = 18\n[model]\narch = layers\n'
    i=0
    while read -r op keys; do
        printf '[layer.l%d]\nop = %s\n' $((i += 1)) "$op"
        for key in $keys; do printf '%s\n' "${key/=/ = }"; done
    done <<'END'
conv2d filters=6 kernel=3 padding=1,0,2,1
leaky_relu alpha=0.2
average_pool2d kernel=3 stride=2 padding=1
average_pool2d kernel=3 stride=1 padding=1 count_padding=yes
transpose_conv2d filters=5 kernel=3 stride=2 padding=same
hard_sigmoid alpha=0.3 beta=0.4
max_pool2d kernel=3 stride=2 padding=1
pad top=1 right=2 back=1
strided_slice axis=2 begin=1 count=5 step=2
transpose d1=2 d2=1 d3=3
resize_bilinear factor=2
resize_nearest height=9 width=7
clip min=-0.3 max=0.6
batch_norm
flatten
fully_connected units=10
END
} >moves.ini
network moves
exit $failed
