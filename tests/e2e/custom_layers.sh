#!/usr/bin/env bash
# The example layers, compiled outside of the library: from C, and as plugins of every command. They are trained,
# exported, compared byte for byte, and run.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
examples=$QAT_BUILD_ROOT/examples
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

check "both layers from C" "$examples/custom_net" "$examples/libswish.so" "$examples/libposition_scale.so"
for scheme in "uint8, paper" "int8, paper" "uint8, tflite" "int8, tflite"; do
    has "from C, $scheme: no byte differs" "^$scheme: .* bytes compared, 0 differ$" out.txt
done

cat >plugins.ini <<INI
[data]
kind = digits
train_count = 640
test_count = 100
[model]
arch = layers
[layer.gain]
op = position_scale
[layer.conv1]
op = conv2d
filters = 8
stride = 2
batch_norm = yes
[layer.act]
op = swish
beta = 1.5
[layer.conv2]
op = conv2d
filters = 8
stride = 2
bias = yes
activation = relu
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
epochs = 2
batch = 16
lr = 0.02
[quant]
enabled = yes
quant_delay = 20
[plugin]
path = $examples/libswish.so, $examples/libposition_scale.so
INI
plugins="--plugin $examples/libswish.so --plugin $examples/libposition_scale.so"
for layout in uint8 int8; do
    for profile in paper tflite; do
        scheme="$layout, $profile"
        run=$layout-$profile
        check "$scheme: qat-train" "$tools/qat-train" plugins.ini --set "quant.layout=$layout" \
            --set "quant.profile=$profile" --out "$run"
        # shellcheck disable=SC2086
        check "$scheme: qat-export" "$tools/qat-export" "$run/last.ckpt" "$run.qm" $plugins
        has "$scheme: no byte differs" 'bytes compared, 0 differing$' out.txt
        # shellcheck disable=SC2086
        check "$scheme: qat-eval of the .qm" "$tools/qat-eval" "$run.qm" --recipe plugins.ini --json $plugins
        sed 's/.*"top1": \([0-9.]*\),.*/\1/' out.txt >engine.txt
        # shellcheck disable=SC2086
        check "$scheme: qat-eval of the checkpoint" "$tools/qat-eval" "$run/last.ckpt" --json $plugins
        sed 's/.*"n": 100, "top1": \([0-9.]*\),.*/\1/' out.txt >exact.txt
        same "$scheme: engine and exact evaluation agree" exact.txt engine.txt
    done
done
refuses "qat-eval with a recipe that names them" 1 "position_scale" "$tools/qat-eval" uint8-paper.qm --recipe plugins.ini
# shellcheck disable=SC2086
check "what export made of them" "$tools/qat-inspect" uint8-paper.qm $plugins
has "swish is a table" '[0-9]+ table +act' out.txt
has "position_scale is an op of its own" '[0-9]+ position_scale +gain' out.txt
{ printf 'P5 28 28 255\n' && head -c 784 /dev/zero | tr '\0' '\200'; } >p.pgm
# shellcheck disable=SC2086
check "qat-run with plugins" "$tools/qat-run" uint8-paper.qm p.pgm $plugins
refuses "qat-eval without them" 1 "position_scale" "$tools/qat-eval" uint8-paper.qm --data digits
refuses "qat-run without them" 1 "position_scale" "$tools/qat-run" uint8-paper.qm p.pgm
refuses "a plugin that is not there" 1 "nowhere.so" "$tools/qat-run" uint8-paper.qm p.pgm --plugin nowhere.so

# Compiled as docs/adding-a-layer.md says, from the build folder.
if command -v pkg-config >/dev/null 2>&1 && [ -d "$QAT_BUILD_ROOT/meson-uninstalled" ]; then
    # shellcheck disable=SC2046
    check "a layer compiled by hand" "${CC:-cc}" -std=c11 -O2 -shared -fPIC "$QAT_SOURCE_ROOT/examples/swish.c" -o libswish.so \
        $(PKG_CONFIG_PATH="$QAT_BUILD_ROOT/meson-uninstalled" pkg-config --cflags --libs libqat) -lm
    sed "s|^path = .*|path = ./libswish.so, $examples/libposition_scale.so|" plugins.ini >compiled.ini
    check "is trained with" "$tools/qat-train" compiled.ini --set train.epochs=1 --out compiled
else
    echo "SKIP a layer compiled by hand: no pkg-config, or no meson-uninstalled"
fi

# The same picture through the 20-line program: it gives qat-run's class (no custom ops here).
check "a model of built-in ops" "$tools/qat-train" "$QAT_SOURCE_ROOT/recipes/quickstart.ini" \
    --set data.train_count=320 --set data.test_count=50 --set train.epochs=1 --out plain
check "its export" "$tools/qat-export" plain/last.ckpt plain.qm
tail -c 784 p.pgm >p.raw
check "classify" "$examples/classify" plain.qm p.raw
sed 's/class //' out.txt >class.txt
check "qat-run" "$tools/qat-run" plain.qm p.pgm
sed 's/^p.pgm: \([0-9]*\) .*/\1/' out.txt >class-run.txt
sed -n '/^```c$/,/^```$/p' "$QAT_SOURCE_ROOT/README.md" | sed '1d; /^```$/,$d' >readme.c
same "README shows that program as it is" readme.c "$QAT_SOURCE_ROOT/examples/classify.c"
refuses "classify of a picture too small" 1 "784 bytes wanted" "$examples/classify" plain.qm <(head -c 10 p.raw)
ops=$QAT_SOURCE_ROOT/tests/golden/data/ops
for several in add_s8_06 split_u8_00; do # two inputs; two outputs
    check "a model that is no classifier" "$tools/qat-import" "$ops/$several/model.tflite" two.qm
    refuses "classify with $several" 1 "two.qm: no classifier of one small picture" "$examples/classify" two.qm p.raw
done
refuses "custom_net without its layers" 2 "usage: custom_net" "$examples/custom_net"
same "classify and qat-run give the same class" class.txt class-run.txt
exit $failed
