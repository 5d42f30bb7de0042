#!/usr/bin/env bash
# Four accuracies are equal: what qat-train prints last, that of the checkpoint, that of the .qm, and the answers of
# qat-run counted over the picture files. The number of right answers is the same, for top-1 and top-5. Each check
# prints one line, `ok -` or `not ok -`. $1: the program that draws pictures.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
draw=$(realpath "$1")
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/e2e/four_figures.sh"
"$draw" pictures || exit 1

cat >pictures.ini <<'END'
[data]
kind = folder
path = pictures
height = 20
width = 20
[model]
filters = 8, 12
strides = 2, 2
[train]
epochs = 6
batch = 24
lr = 0.1
[quant]
enabled = yes
quant_delay = 50%
END
cat >shapes.ini <<'END'
[data]
kind = shapes
height = 24
train_count = 256
test_count = 200
[model]
arch = mobilenet_v1
multiplier = 0.25
first_stride = 1
bn_momentum = 0.9
[train]
steps = 40
batch = 32
optimizer = adam
lr = 0.005
[quant]
enabled = yes
layout = int8
weight_bits = 4
activation_bits = 4
quant_delay = 24
END

four() { # four <what> <recipe> <data of the .qm> <pictures> [options...]
    local what=$1
    shift
    if ! four_figures "$1" four "${@:2}" 2>err.txt; then
        not_ok "$what"
        tail -n 5 err.txt
    elif all_same && [ "${trained%%/*}" -gt 0 ]; then
        ok "$what: $trained of $samples everywhere"
    else
        not_ok "$what: of $samples, qat-train $trained, checkpoint $exact, .qm $engine, qat-run $counted"
    fi
}

four "pictures squashed" pictures.ini folder:pictures pictures/val
four "pictures by their short side, int8" pictures.ini folder:pictures pictures/val \
    --set data.resize_short=22 --set quant.layout=int8 --set quant.profile=tflite
four "the middle of pictures" pictures.ini folder:pictures pictures/val --set data.central_crop=0.7 --set data.resize_short=30 \
    --set data.height=16 --set data.width=24
four "grey pictures at 4 bits, averaged parameters" pictures.ini folder:pictures pictures/val \
    --set data.channels=1 --set quant.weight_bits=4 --set quant.activation_bits=4 --set train.average_decay=0.9
four "a MobileNet at 4 bits" shapes.ini shapes.ini ""
exit $failed
