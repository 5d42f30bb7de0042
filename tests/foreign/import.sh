#!/usr/bin/env bash
# qat-import on operators of the golden set and on files that are not models. qat-run runs the results, and they are
# compared as arrays and tensor by tensor. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
ops=${QAT_SOURCE_ROOT:?}/tests/golden/data/ops
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

# The first case of each kind that the committed subset holds.
first_of() { # first_of <operator>
    awk -v op="$1" '$2 == op { print $1; exit }' "$ops/index.txt"
}

for op in CONV_2D DEPTHWISE_CONV_2D SOFTMAX RESIZE_BILINEAR; do
    case=$ops/$(first_of $op)
    check "import $op" "$tools/qat-import" "$case/model.tflite" m.qm
    check "run $op" "$tools/qat-run" m.qm --input "$case/in0.npy" --output y.npy
    same "$op gives the reference's bytes" y.npy "$case/out0.npy"
done

# A model with a state, on the four runs of its case as the steps of one array.
case=$QAT_SOURCE_ROOT/tests/golden/data/ops2/svdf_s8_06
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|i1', 'fortran_order': False, 'shape': (4, 1, 5), }"
    for run in "" _run1 _run2 _run3; do tail -c 5 "$case/in0$run.npy"; done
} >steps.npy
for run in "" _run1 _run2 _run3; do tail -c 7 "$case/out0$run.npy"; done >expected
check "import SVDF" "$tools/qat-import" "$case/model.tflite" m.qm
check "its state is shown" "$tools/qat-inspect" m.qm
has "as a state" " state +int16 " out.txt
check "run --steps" "$tools/qat-run" m.qm --steps --input steps.npy --output y.npy
tail -c 28 y.npy >got
same "its state carries on from step to step" got expected
check "run one step" "$tools/qat-run" m.qm --input "$case/in0.npy" --output y.npy
same "every program begins with reset states" y.npy "$case/out0.npy"
refuses "--steps and --dump-tensors" 2 "of one run" "$tools/qat-run" m.qm --steps --input steps.npy --dump-tensors d

case=$ops/$(first_of ADD)
check "import ADD" "$tools/qat-import" "$case/model.tflite" m.qm --description "two inputs"
has "inputs are listed" '^input 1: ' out.txt
check "two --input" "$tools/qat-run" m.qm --input "$case/in0.npy" --input "$case/in1.npy" \
    --output y.npy --dump-tensors d
same "ADD gives the reference's bytes" y.npy "$case/out0.npy"
check "tensors are numbered as in the source file" test -f d/t2.npy
same "a dumped tensor is the output" d/t2.npy y.npy
refuses "one --input of two" 2 "the model has 2 inputs" "$tools/qat-run" m.qm --input "$case/in0.npy"
check "qat-inspect" "$tools/qat-inspect" m.qm
has "the description is stored" 'two inputs' out.txt
has "an imported model has no checkpoint" '^checkpoint: none' out.txt
has "inspect numbers tensors as the source does" '^ +t2 +[0-9]+ output ' out.txt
has "the device's arena" '^m.qm: .qm, [0-9]+ bytes, device arena [0-9]+ bytes$' out.txt
check "inspect a tensor by that number" "$tools/qat-inspect" m.qm --tensor t2 --json
has "it is the output" '"kind": "output", .*"source_index": 2,' out.txt
device=$("$tools/qat-inspect" m.qm --json | sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p')
for tool in "qat-import $case/model.tflite n.qm" "qat-bench m.qm --runs 1"; do
    # shellcheck disable=SC2086
    check "${tool%% *} for its arena" "$tools/"$tool
    has "${tool%% *}: the same arena" "device arena $device bytes" out.txt
done
check "bench --json" "$tools/qat-bench" m.qm --runs 1 --json
has "bench --json: both arenas" "\"arena_bytes\": $device, \"host_arena_bytes\": [0-9]+" out.txt

# A CONCATENATION of several scales: what requantizes its inputs is in no source file.
for case in "$ops"/concat*; do
    [ -f "$case/model.tflite" ] || continue
    "$tools/qat-import" "$case/model.tflite" m.qm >/dev/null 2>&1 || continue
    "$tools/qat-inspect" m.qm >listing.txt
    grep -qE '^ +q[0-9]+ +[0-9]+ act ' listing.txt && break
done
inserted=$(sed -n 's/^ *\(q[0-9]*\) *[0-9]* act .*/\1/p' listing.txt | head -n 1)
check "there is such a case" test -n "$inserted"
inputs=
for input in "$case"/in*.npy; do inputs="$inputs --input $input"; done
# shellcheck disable=SC2086
check "dump it" "$tools/qat-run" m.qm $inputs --dump-tensors concat
check "what the source does not have is numbered apart" test -f "concat/$inserted.npy"
check "so that nothing is written over" test "$(ls concat | wc -l)" = "$(grep -cE '^ +[tq][0-9]+ +[0-9]+ (input|act|output) ' listing.txt)"
case=$ops/$(first_of ADD)

case=$ops/arg_max_s8_03
check "import ARG_MAX with labels" sh -c "printf 'a\nb\nc\n' >l.txt && '$tools/qat-import' '$case/model.tflite' m.qm --labels l.txt"
check "run ARG_MAX" "$tools/qat-run" m.qm --input "$case/in0.npy"
has "ARG_MAX answers with a class a row" 'in0\.npy: [0-9]+ [abc]?, [0-9]+ [abc]?, [0-9]+ [abc]?$' out.txt
check "run ARG_MAX --json" "$tools/qat-run" m.qm --input "$case/in0.npy" --json
has "its classes" '"classes": \[(\{"class": [0-9]+, "label": "[abc]?"\}(, )?){3}\]\}$' out.txt
case=$ops/$(first_of CONV_2D)
check "import CONV_2D" "$tools/qat-import" "$case/model.tflite" m.qm
refuses "an answer that is no class" 1 "is not a list of classes: write it with --output" \
    "$tools/qat-run" m.qm --input "$case/in0.npy"
check "nor is it asked for where it is written" "$tools/qat-run" m.qm --input "$case/in0.npy" --dump-tensors e

case=$ops/$(first_of DEQUANTIZE)
check "import DEQUANTIZE" "$tools/qat-import" "$case/model.tflite" m.qm
has "a float32 output is announced" '^output 0: .* \(float32 outside\)$' out.txt
check "run DEQUANTIZE" "$tools/qat-run" m.qm --input "$case/in0.npy" --output y.npy
same "DEQUANTIZE gives the reference's floats" y.npy "$case/out0.npy"

refuses "more labels than classes" 2 "l.txt has 3 labels, but " sh -c \
    "printf 'a\nb\nc\n' >l.txt && '$tools/qat-import' '$ops/$(first_of SOFTMAX)/model.tflite' none.qm --labels l.txt"
check "import with int8 codes" "$tools/qat-import" "$ops/l2_normalization_s8_00/model.tflite" m.qm
printf 'P5 2 2 255\n\1\1\1\1' >p.pgm
refuses "a picture for a model of int8 codes" 1 "the model takes int8 codes and does not say how pictures become them" \
    "$tools/qat-run" m.qm p.pgm
refuses "pixels for a model of int8 codes" 1 \
    "digits/test: the data are pixels; the model takes int8 codes and does not say how pixels become them" \
    "$tools/qat-eval" m.qm --data digits
check "import of a convolution" "$tools/qat-import" "$ops/$(first_of CONV_2D)/model.tflite" m.qm
refuses "--top of what is no list of scores" 2 "--top is for classifiers" "$tools/qat-run" m.qm p.pgm --top 3

case=$ops/$(first_of CONV_2D)
printf 'cat\0tail\ndog\n' >zero.txt
refuses "labels with a byte 0" 1 "zero.txt: not a text file (byte 3 is 0)" "$tools/qat-import" "$case/model.tflite" none.qm --labels zero.txt
check "import with labels" sh -c "printf 'cat\ndog\n' >l.txt && '$tools/qat-import' '$case/model.tflite' m.qm --labels l.txt --json"
has "labels are counted" '"labels": 2' out.txt
cp "$case/model.tflite" nameless
check "a .tflite file by another name" "$tools/qat-import" nameless m.qm
head -c 100 "$case/model.tflite" >cut.tflite
refuses "a cut file" 1 "cut.tflite: malformed" "$tools/qat-import" cut.tflite none.qm
cp l.txt text.tflite
refuses "no .tflite file" 1 "not a .tflite file" "$tools/qat-import" text.tflite none.qm
refuses "no model at all" 1 "l.txt: the model: not an ONNX file" "$tools/qat-import" l.txt none.qm
refuses "a file that is not there" 1 "absent.tflite" "$tools/qat-import" absent.tflite none.qm
refuses "too few arguments" 2 "too few arguments" "$tools/qat-import" cut.tflite
check "nothing is written on failure" test ! -e none.qm

cp "$case/model.tflite" same.tflite
refuses "a model over itself" 2 "it would be overwritten" "$tools/qat-import" same.tflite same.tflite
check "the model is still there" cmp same.tflite "$case/model.tflite"

detector=${QAT_DATA:-$QAT_SOURCE_ROOT/../shared/data}/models/coco_ssd_mobilenet_v1_1.0_quant
if [ -f "$detector.tflite" ]; then
    head -n 90 "${detector}_labels.txt" >short.txt
    refuses "labels of a detector without its background" 2 "short.txt has 90 labels, but " \
        "$tools/qat-import" "$detector.tflite" d.qm --labels short.txt
    check "import of a detector" "$tools/qat-import" "$detector.tflite" d.qm --labels "${detector}_labels.txt"
    check "inspect it" "$tools/qat-inspect" d.qm
    has "its epilogue" '^epilogue, computed outside the engine: detection_postprocess of t[0-9]+,t[0-9]+,t[0-9]+: boxes of [0-9]+ classes$' out.txt
    has "how many labels" '^labels: 91: \?\?\?, person, ' out.txt
    refuses "--top of a detector" 2 "--top is for classifiers: for a detector" "$tools/qat-run" d.qm p.pgm --top 3
else
    echo "SKIP a detector's labels, epilogue and --top: no $detector.tflite"
fi

exit $failed
