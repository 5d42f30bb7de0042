#!/usr/bin/env bash
# The commands from end to end on drawn digits: what they print, what they refuse and how, and that the same run gives
# the same bytes, also if it was killed. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
recipes=${QAT_SOURCE_ROOT:?}/recipes
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

small="--set data.train_count=320 --set data.test_count=100 --set train.epochs=2 --set train.batch=16
    --set train.log_every=1 --set model.filters=4,8 --set model.strides=2"
train() { # train <folder> <options...>
    folder=$1
    shift
    # shellcheck disable=SC2086
    "$tools/qat-train" "$recipes/quickstart.ini" $small --out "$folder" "$@"
}

# ---------------------------------------------------------------- usage
for tool in qat-train qat-export qat-import qat-eval qat-run qat-bench qat-inspect; do
    check "$tool --help" "$tools/$tool" --help
    has "$tool --help says how it ends" '^exit status: 0 done, 1 failed, 2 wrong option, value or recipe$' out.txt
    check "$tool --version" "$tools/$tool" --version
    has "$tool --version" "^$tool [0-9]+\.[0-9]+\.[0-9]+$" out.txt
    refuses "$tool with an unknown option" 2 "unknown option --nonsense" "$tools/$tool" --nonsense
done
refuses "qat-train without a recipe" 2 "give a recipe" "$tools/qat-train"
refuses "qat-train --threads 0" 2 "expected an integer in 1..256" "$tools/qat-train" x --threads 0
refuses "an option without its value" 2 "--out needs a value" "$tools/qat-train" x --out
refuses "too few arguments" 2 "too few arguments" "$tools/qat-export" x
refuses "a format that cannot be written" 2 "only qm" "$tools/qat-export" a b --format elf
refuses "an ending that names no format" 2 "net.tflit: the ending .tflit names no format: give --format" "$tools/qat-export" a net.tflit
check "qat-train --keys" "$tools/qat-train" --keys
has "--keys writes limits in full" '^beta2 = 0.999  \(number 0\.\.0.9999999\)$' out.txt
has "--keys names ranges" '^batch = 64  \(integer 1\.\.65536\)$' out.txt
check "qat-train --ops" "$tools/qat-train" --ops
has "--ops names attributes" '^conv2d: ' out.txt
data=${QAT_DATA:-$QAT_SOURCE_ROOT/../shared/data}
for recipe in "$recipes"/*.ini; do
    name=$(basename "$recipe" .ini)
    path=$(sed -n 's/^path = ${QAT_DATA}//p' "$recipe") # or its data are drawn
    if [ -n "$path" ] && [ ! -e "$data$path" ]; then
        echo "SKIP dry run of $name: no $data$path"
        continue
    fi
    check "dry run of $name" env QAT_DATA="$data" "$tools/qat-train" "$recipe" --dry-run
    has "dry run of $name: totals" '^total +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+$' out.txt
done
for recipe in "$recipes"/paper/$(sanitized 'face_a*' '*').ini; do # the recipe says what the data would be
    name=$(basename "$recipe" .ini)
    check "dry run of $name" env QAT_DATA=/nowhere "$tools/qat-train" "$recipe" --dry-run
    has "dry run of $name: without the data" '^the data are not here; these numbers are for [0-9]+ x [0-9]+ x 3 pixels and [0-9]+ (classes|attributes)' out.txt
    has "dry run of $name: totals" '^total +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+$' out.txt
done

refuses "dry run of a batch that the data do not fill" 2 "train.batch = 50, but there are only 10 training samples" \
    "$tools/qat-train" "$recipes/quickstart.ini" --dry-run --set data.train_count=10

# ---------------------------------------------------------------- recipes that are wrong
wrong() { # wrong <what> <text> <recipe text>
    printf '%b' "$3" >wrong.ini
    refuses "$1" 2 "$2" "$tools/qat-train" wrong.ini --out wrong
}
wrong "an unknown key" "wrong.ini:3: unknown key train.epoch; the nearest is train.epochs" \
    '[train]\nlr = 1\nepoch = 3\n'
wrong "a value out of range" "wrong.ini:2: train.batch = 0: expected an integer in 1..65536" \
    '[train]\nbatch = 0\n'
wrong "a line too long" "wrong.ini:2: the line has 306 characters, but at most 199 are possible" \
    "[model]\nname = $(printf '%0299d' 0)\n"
wrong "an unknown op" "wrong.ini:4: [layer.a]: unknown op conv; the nearest is" \
    '[model]\narch = layers\n[layer.a]\nop = conv\n'
wrong "an impossible shape" "wrong.ini:3: " \
    '[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 4\nkernel = 31\npadding = valid\n'
wrong "shapes that do not meet" "the last layer, a, gives [1, 9], but 10 classes need [1, 10]" \
    '[model]\narch = layers\n[layer.a]\nop = fully_connected\nunits = 9\n'
refuses "a recipe that is not there" 1 "none.ini" "$tools/qat-train" none.ini
refuses "an unwritable output folder" 1 "/dev/null" train /dev/null/x
refuses "a loss that is not finite" 1 "the loss is NaN; the first layer with such a value is conv" \
    train nan --set train.lr=1e30

# ---------------------------------------------------------------- data that are wrong
idx_of() { # idx_of <folder> <train image bytes> <labels as octal escapes>
    mkdir -p "$1"
    for split in train t10k; do
        { printf '\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\4' && head -c "$2" /dev/zero; } \
            >"$1/$split-images-idx3-ubyte"
        printf '\0\0\10\1\0\0\0\2%b' "$3" >"$1/$split-labels-idx1-ubyte"
    done
}
on_idx() { # on_idx <folder> <options...>
    folder=$1
    shift
    "$tools/qat-train" "$recipes/quickstart.ini" --set data.kind=idx --set data.path="$folder" \
        --set data.train_count=0 --set data.test_count=0 --set train.batch=1 --set train.steps=1 \
        --set model.filters=2 --set model.strides=1 --out idx-run --overwrite "$@"
}
idx_of good 32 '\0\1'
check "a small IDX set trains" on_idx good
idx_of short 31 '\0\1'
refuses "truncated images" 1 "short/" on_idx short
idx_of labels 32 '\0\11'
refuses "a label out of range" 1 "9" on_idx labels --set data.classes=5
idx_of foreign 32 '\0\1'
printf 'GIF89a and so on, long enough' >foreign/train-images-idx3-ubyte
refuses "a foreign file" 1 "foreign/train-images-idx3-ubyte" on_idx foreign
refuses "missing data" 1 "nowhere" on_idx nowhere
refuses "an unknown kind of data" 2 "expected KIND[:PATH], where KIND is one of digits|shapes|idx" \
    "$tools/qat-eval" idx-run/last.ckpt --data jpegs:x

# ---------------------------------------------------------------- the whole path
check "a run" train a
check "the same run" train b
refuses "a run in the folder of another" 1 "a/last.ckpt already exists" train a
refuses "two ways with it at once" 2 "either --resume or --overwrite" train a --resume --overwrite
refuses "a folder without a name" 2 "output.dir is empty" train ""
refuses "resuming what is not there" 1 "nowhere/last.ckpt" train nowhere --resume
check "nothing is left of that" test ! -e nowhere
check "the same run on one thread" train c --threads 1
for other in b c; do
    for file in log.csv last.ckpt best.ckpt; do
        same "$file of run $other" a/$file $other/$file
    done
done
check "export" "$tools/qat-export" a/last.ckpt a.qm
has "export: no byte differs" ', 0 differing$' out.txt
has "export: the float32 simulation's difference" 'float32 simulation against engine: [0-9]+ of' out.txt
has "export: each layer against float32" '^float32 layer by layer .*: [0-9]+ layers, at most 0\.[0-9]+ quanta apart \(.*\); [0-9]+ of [0-9]+ codes differ \([0-9.]+ %\), 0 by more than one$' out.txt
has "export: what it was verified on" '^verified on digits/test: 100 samples' out.txt
check "export of the same run" "$tools/qat-export" b/last.ckpt b.qm
same "the models of both runs" a.qm b.qm
check "export --json" "$tools/qat-export" a/last.ckpt a.qm --json --samples 10
has "export --json" '"samples": 10, .*"differing": 0' out.txt
refuses "a .qm as a .qm" 2 "a.qm is a .qm already" "$tools/qat-export" a.qm again.qm
check "export, profile tflite" "$tools/qat-export" a/last.ckpt t.qm --profile tflite --samples 20
check "export, profile onnx" "$tools/qat-export" a/last.ckpt o.qm --profile onnx --samples 20
has "export, profile onnx: no byte differs" ', 0 differing$' out.txt
refuses "an unknown profile" 2 "--profile half: expected paper, tflite or onnx" "$tools/qat-export" a/last.ckpt n.qm --profile half
if "$tools/qat-export" t.qm t.onnx >out.txt 2>err.txt; then
    has "a model of another profile as ONNX: it is said" 'round otherwise in ONNX Runtime.*--profile onnx' err.txt
    check "a checkpoint as ONNX" "$tools/qat-export" a/last.ckpt o.onnx --samples 20
    if grep otherwise err.txt; then not_ok "profile onnx is said to round otherwise"; else ok "nothing is said of it"; fi
    check "the model of profile onnx as ONNX" "$tools/qat-export" o.qm again.onnx
    same "a checkpoint takes profile onnx for a file of ONNX" o.onnx again.onnx
    check "in another form" "$tools/qat-export" a/last.ckpt i.onnx --form integer --samples 20
    check "the model of the recipe's profile in that form" "$tools/qat-export" a.qm again.onnx --form integer
    same "the form integer keeps the recipe's profile" i.onnx again.onnx
else
    has "a build without ONNX says so" 'without protobuf-c' err.txt
fi
check "a model of profile onnx as .tflite" "$tools/qat-export" o.qm o.tflite
has "by how much it differs" 'layers round otherwise in TensorFlow Lite' err.txt
check "real numbers in and out of a .tflite file" "$tools/qat-export" t.qm real.tflite --float-io
check "they are codes inside" "$tools/qat-import" real.tflite real.qm
refuses "real numbers of a float network" 2 "takes real numbers anyway" "$tools/qat-export" a/last.ckpt f.tflite --float --float-io
refuses "real numbers in a .qm" 2 "of the formats onnx and tflite" "$tools/qat-export" a/last.ckpt f.qm --float-io
check "float parameters as an archive" "$tools/qat-export" a/last.ckpt a.npz --float
check "a run that begins with the archive" train from-npz --init a.npz --set train.epochs=0
check "its parameters as an archive" "$tools/qat-export" from-npz/last.ckpt again.npz --float
same "the archives of both runs" a.npz again.npz
check "the same, told in JSON" "$tools/qat-export" a/last.ckpt json.npz --float --json
has "its size" '^{"path": "json.npz", "format": "npz", "bytes_written": [0-9]+}$' out.txt
refuses "calibration of a float network" 2 "which has no integers to calibrate" "$tools/qat-export" a/last.ckpt b.npz --float --ptq recipe
refuses "an archive of integers" 2 "the format npz holds parameters of a float network: it needs --float" \
    "$tools/qat-export" a/last.ckpt a.npz
refuses "float parameters of a .qm" 2 "t.qm is a .qm: it has integers only" "$tools/qat-export" t.qm t.npz --float
check "export --summary" "$tools/qat-export" a/last.ckpt stripped.qm --summary --strip
has "the size in it is the file's" "^bytes \(parameters, .qm\) +[0-9]+ +$(wc -c <stripped.qm)\$" out.txt
check "export --summary" "$tools/qat-export" a/last.ckpt a.qm --summary
has "the summary ends in mismatching bytes" '^mismatching bytes +0$' out.txt
refuses "an unwritable .qm" 1 "/dev/null/x.qm" "$tools/qat-export" a/last.ckpt /dev/null/x.qm --samples 2
cp a/last.ckpt kept.ckpt
ln -s a/last.ckpt link.qm
for over in a/last.ckpt ./a/../a/last.ckpt link.qm b/last.ckpt; do
    refuses "a .qm over the checkpoint $over" 2 "$over is a checkpoint" \
        "$tools/qat-export" a/last.ckpt $over --format qm --samples 2
done
same "the checkpoint after that" kept.ckpt a/last.ckpt
check "a float run" train float --set quant.enabled=no
check "the same float run" train float2 --set quant.enabled=no
same "log.csv of the same float run" float/log.csv float2/log.csv
head -n 21 a/log.csv >a-until.csv
head -n 21 float/log.csv >float-until.csv
same "until its delay (20 steps) a quantized run logs what the float run does" a-until.csv float-until.csv
if cmp -s a/log.csv float/log.csv; then not_ok "after it, the logs differ"; else ok "after it, the logs differ"; fi
refuses "export of a float run" 1 "--ptq" "$tools/qat-export" float/last.ckpt f.qm
check "export of a float run, calibrated" "$tools/qat-export" float/last.ckpt f.qm --ptq recipe

check "eval of a checkpoint" "$tools/qat-eval" a/last.ckpt --json
has "its keys" '"n": 100, "top1": [0-9.]+, "top5": [0-9.]+, "float_top1": [0-9.]+, "float_top5": [0-9.]+}' out.txt
sed 's/.*"top1": \([0-9.]*\), "top5": \([0-9.]*\).*/\1 \2/' out.txt >exact.txt
check "eval of the .qm" "$tools/qat-eval" a.qm --recipe "$recipes/quickstart.ini" --json --samples 100
check "eval of the .qm on the run's own data" "$tools/qat-eval" a.qm --data digits --samples 100 --json
printf '[data]\nkind = digits\ntest_count = 100\n' >data.ini
check "eval of the .qm on the same samples" "$tools/qat-eval" a.qm --recipe data.ini --json
sed 's/.*"top1": \([0-9.]*\), "top5": \([0-9.]*\).*/\1 \2/' out.txt >engine.txt
same "engine and exact evaluation agree" exact.txt engine.txt
has "eval says which instruction set ran" '"isa": "[a-z0-9]+"}$' out.txt
check "eval as text" "$tools/qat-eval" a.qm --recipe data.ini
has "top-5 of ten classes" '^quantized +top-1 [0-9.]+ %  top-5 [0-9.]+ %  \(100 samples\)$' out.txt
check "eval --isa scalar" "$tools/qat-eval" a.qm --recipe data.ini --json --isa scalar
has "and that it was scalar" '"isa": "scalar"}$' out.txt
sed 's/.*"top1": \([0-9.]*\), "top5": \([0-9.]*\).*/\1 \2/' out.txt >scalar.txt
same "scalar and the best instruction set agree" engine.txt scalar.txt
refuses "eval of a .qm without data" 2 "needs --recipe or --data" "$tools/qat-eval" a.qm
refuses "eval of something else" 1 "neither a checkpoint nor a .qm" "$tools/qat-eval" a/log.csv --data digits
refuses "eval on pictures with other channels" 1 "samples have 3 channels, but the network takes 1" \
    "$tools/qat-eval" a.qm --data shapes

{ printf 'P5 28 28 255\n' && head -c 400 /dev/zero && head -c 384 /dev/zero | tr '\0' '\377'; } >p.pgm
check "run on a picture" "$tools/qat-run" a.qm p.pgm --top 3 --output y1.npy --dump-tensors dump
has "its answer: class, label, real number, code" '^p.pgm: [0-9]+ [0-9] \([-0-9.e]+, code [0-9]+\), ' out.txt
check "run --json" "$tools/qat-run" a.qm p.pgm --json
has "its object" '^\{"input": "p.pgm", "top": \[\{"class": [0-9]+, "label": "[0-9]", "value": [-0-9.e]+, "code": [0-9]+\}\]\}$' out.txt
input=$("$tools/qat-inspect" a.qm --json | sed -n 's/.*"bytes": [0-9]*, "inputs": \[\([0-9]*\)\].*/\1/p')
check "run on an array" "$tools/qat-run" a.qm --input "dump/t$input.npy" --output y2.npy
same "picture and array give the same output" y1.npy y2.npy
for threads in 1 2 3; do
    check "run --isa scalar --threads $threads" "$tools/qat-run" a.qm p.pgm --isa scalar --threads $threads --output ys.npy
    same "its output is the best instruction set's" y1.npy ys.npy
done
refuses "an unknown instruction set" 2 "--isa avx9: this build does not know it; this processor runs: " \
    "$tools/qat-run" a.qm p.pgm --isa avx9
refuses "an array that does not fit" 1 "y1.npy: |u1 of shape [1, 10], but input 0 of the model, input/q/pixels, is |u1 of [1, 28, 28, 1]" \
    "$tools/qat-run" a.qm --input y1.npy
reshaped() { # reshaped <file> <shape>: the input's bytes in another shape
    text="{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }"
    { printf '\223NUMPY\001\000\166\000%-117s\n' "$text" && tail -c 784 "dump/t$input.npy"; } >"$1"
}
reshaped nchw.npy "1, 1, 28, 28"
reshaped flat.npy "784,"
reshaped batch.npy "2, 14, 28, 1"
reshaped single.npy "28, 28, 1"
for shape in nchw flat batch; do
    refuses "an array of another shape, $shape" 1 "input 0 of the model" "$tools/qat-run" a.qm --input $shape.npy
done
check "an array without the batch" "$tools/qat-run" a.qm --input single.npy --output y3.npy
same "gives the same output" y1.npy y3.npy
head -c 700 p.pgm >cut.pgm
refuses "a picture that is cut" 1 "cut.pgm: truncated, the file ends before the picture does" "$tools/qat-run" a.qm cut.pgm
refuses "a picture beyond the limit" 1 "p.pgm: 28 x 28 pixels, more than the 783 allowed" "$tools/qat-run" a.qm p.pgm --max-pixels 783
check "a picture at the limit" "$tools/qat-run" a.qm p.pgm --max-pixels 784
printf 'GIF89a....' >p.png
refuses "a picture of another format" 1 "p.png: a GIF file; these formats can be read: PNG, JPEG, BMP, PNM" "$tools/qat-run" a.qm p.png
refuses "neither picture nor array" 2 "give either pictures, sounds or --input" "$tools/qat-run" a.qm
refuses "a picture that is none" 1 "a/log.csv" "$tools/qat-run" a.qm a/log.csv

check "bench" "$tools/qat-bench" a.qm --runs 20 --threads 1,3 --cpus 0
has "bench: the four figures" '^threads 1, 20 runs: min [0-9.]+ ms, median [0-9.]+, mean [0-9.]+, p95 [0-9.]+; [0-9.]+ GMAC/s$' out.txt
has "bench: threads beyond the processors are marked" '^threads 3\*, 20 runs' out.txt
has "bench: a layer's line" '^ +[0-9]+ conv1 +conv2d +[0-9.]+ +[0-9.]+ % +[0-9.]+' out.txt
check "bench --json" "$tools/qat-bench" a.qm --seconds 0.05 --random-input --cpus 0 --isa scalar --json
number='[0-9]+\.[0-9]+'
has "bench: its object" "\"isa\": \"scalar\", \"threads\": 1, \"cores\": 1, .*\"min_ms\": $number, \"median_ms\": $number, \"mean_ms\": $number, \"p95_ms\": $number, .*\"layers\": \[\{" out.txt
check "bench of a checkpoint" "$tools/qat-bench" a/last.ckpt --seconds 0.05 --threads 1,2 --json
has "bench: the float network" "\"network\": \"float\", \"threads\": 2, .*\"min_ms\": $number" out.txt
refuses "bench of a checkpoint with --isa" 2 "is a checkpoint: --isa works with a .qm only" "$tools/qat-bench" a/last.ckpt --isa scalar
check "bench --load" "$tools/qat-bench" a.qm --load
has "bench: a new process" '^new process +threads 1: open [0-9.]+ ms \+ first run [0-9.]+ ms = [0-9.]+ x an inference' out.txt
refuses "bench of no model" 1 "none.qm" "$tools/qat-bench" none.qm
refuses "bench --load of no model" 1 "none.qm" "$tools/qat-bench" none.qm --load
refuses "bench --load with --runs" 2 "--load cannot be combined with --runs" "$tools/qat-bench" a.qm --load --runs 5
refuses "bench --load with --seconds" 2 "--load cannot be combined with --seconds" "$tools/qat-bench" a.qm --load --seconds 5
refuses "bench --load with --random-input" 2 "--load cannot be combined with --random-input" \
    "$tools/qat-bench" a.qm --load --random-input
refuses "bench with no threads" 2 "integers in 1..256" "$tools/qat-bench" a.qm --threads 1,0
refuses "bench on processors that are none" 2 "expected numbers and ranges" "$tools/qat-bench" a.qm --cpus 0-
refuses "bench with both ends" 2 "either --runs or --seconds" "$tools/qat-bench" a.qm --runs 1 --seconds 1
refuses "bench on an unknown instruction set" 2 "this processor runs: " "$tools/qat-bench" a.qm --isa avx9

# ---------------------------------------------------------------- a published network, by its name
for class in a b; do # pictures of another size, in files: they are brought to the name's
    mkdir -p pictures/train/$class pictures/test/$class
    for i in 1 2; do
        { printf 'P6 40 30 255\n' && head -c 3600 /dev/urandom; } >pictures/train/$class/$i.ppm
        cp pictures/train/$class/$i.ppm pictures/test/$class
    done
done
printf '[data]\nkind = folder\npath = pictures\n[model]\narch = mobilenet_v1_0.25_128\nactivation = relu6
[train]\nsteps = 1\nbatch = 4\n[quant]\nenabled = yes\n' >mobilenet.ini
check "a step of mobilenet_v1_0.25_128" "$tools/qat-train" mobilenet.ini --out mobilenet
check "its export" "$tools/qat-export" mobilenet/last.ckpt mobilenet.qm
check "inspect its checkpoint" "$tools/qat-inspect" mobilenet/last.ckpt
has "inspect: parameters and multiply-adds" '^213586 trainable parameters, 13314560 multiply-adds$' out.txt
check "inspect its .qm" "$tools/qat-inspect" mobilenet.qm
has "inspect: size of the pictures" '^input: 128 x 128 x 3 pixels' out.txt
has "inspect: the integers multiply as often" '^[0-9]+ weights and biases, 13314560 multiply-adds$' out.txt

check "inspect a .qm" "$tools/qat-inspect" a.qm
has "inspect: size of the network" '^426 weights and biases, 21248 multiply-adds$' out.txt
has "inspect: multipliers" 'M0=[0-9]+ shift=-?[0-9]+' out.txt
has "inspect: a scale and a range" 'uint8 +1x28x28x1 +0\.00784313772 +127 -0\.996078\.\.1\.00392' out.txt
check "inspect a checkpoint's weights" "$tools/qat-inspect" a/last.ckpt --tensor conv1/weights/q
has "inspect: real and quantized values side by side" ' q +S\(q - Z\) +real +difference' out.txt
check "inspect an activation of a .qm" "$tools/qat-inspect" a.qm --tensor 1
refuses "inspect an unknown tensor" 2 "no tensor conv1/weight (there are " \
    "$tools/qat-inspect" a/last.ckpt --tensor conv1/weight
has "inspect: the nearest" 'the nearest name is conv1/weights$' err.txt
check "inspect a parameter of a checkpoint" "$tools/qat-inspect" a/last.ckpt --tensor conv1/weights --limit 3
has "inspect: its real values" '^parameter conv1/weights: ' out.txt
check "inspect a parameter of a float run" "$tools/qat-inspect" float/last.ckpt --tensor conv1/weights --json --limit 2
has "inspect: its JSON" '"kind": "parameter", .*"real": \[[-0-9.e]+, [-0-9.e]+\]\}$' out.txt
check "inspect a tensor as JSON" "$tools/qat-inspect" a.qm --tensor 1 --json --limit 2
has "inspect: its JSON" '^\{"index": 1, .*"codes": \[[-0-9]+, [-0-9]+\], "values": \[' out.txt
refuses "inspect a stage of a .qm" 2 "--stage needs --graph" "$tools/qat-inspect" a.qm --graph --stage eval
refuses "inspect a stage without a graph" 2 "--stage needs --graph" "$tools/qat-inspect" a/last.ckpt --stage eval
refuses "inspect two things at once" 2 "one of --graph, --tensor, --plot and --labels" \
    "$tools/qat-inspect" a.qm --tensor 1 --plot plots
refuses "inspect a graph as JSON" 2 "--json can be combined with --tensor" "$tools/qat-inspect" a.qm --graph --json
refuses "eval of a .qm, calibrated" 2 "--ptq works with checkpoints only" "$tools/qat-eval" a.qm --data digits --ptq recipe
refuses "eval of a checkpoint on an instruction set" 2 "--isa works with a .qm only" "$tools/qat-eval" a/last.ckpt --isa scalar
check "graphs of a checkpoint" "$tools/qat-inspect" a/last.ckpt --graph
has "graphs: inserted nodes are marked" '^\+ conv1/relu/q +fake_quant' out.txt
check "a recipe's graph for Graphviz" "$tools/qat-inspect" "$recipes/quickstart.ini" --graph=dot --stage eval
has "dot" '^digraph ' out.txt
npy() { # npy <type> <shape>: the header of an array
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
}
mkdir arrays
for split in train test; do
    { npy '|u1' '20, 8, 8, 1' && head -c 1280 "$tools/qat-inspect"; } >arrays/${split}_x.npy
    { npy '|u1' '20,' && printf '\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1'; } >arrays/${split}_y.npy
done
printf '[data]\nkind = npy\npath = arrays\n[train]\nbatch = 10\nsteps = 2\n[model]\nfilters = 4\nstrides = 2\n[quant]\nenabled = yes\n' >arrays.ini
check "training on arrays" "$tools/qat-train" arrays.ini --out arrays-run
{ npy '|u1' '20, 4, 4, 1' && head -c 320 "$tools/qat-inspect"; } >arrays/test_x.npy
refuses "inspect a tensor, when the data have become smaller" 1 "samples have 4 x 4 x 1 values, but the network takes 8 x 8 x 1" \
    "$tools/qat-inspect" arrays-run/last.ckpt --tensor 1
check "inspect a tensor by the number of the listing" "$tools/qat-inspect" a.qm --tensor t1
has "inspect: the checkpoint's digest" '^checkpoint: [0-9a-f]{64}$' <("$tools/qat-inspect" a.qm)
has "inspect: how many labels, and the first" '^labels: 10: 0, 1, 2, 3, 4, \.\.\. \(--labels shows all\)$' <("$tools/qat-inspect" a.qm)
check "inspect --labels" "$tools/qat-inspect" a.qm --labels
has "all labels" '^9 9$' out.txt
"$tools/qat-inspect" a.qm --json >a.json
has "labels as JSON" '"labels": \["0", "1", .*"9"\], "epilogue": null' a.json
if "$tools/qat-inspect" a.qm --plot made/plots >out.txt 2>err.txt; then
    has "histograms are told when they are written" '^made/plots/t0.png, made/plots/t0.svg: [^ ]+, [0-9]+ codes$' out.txt
    if [ "$(head -c 4 made/plots/t0.png | tail -c 3)" = PNG ]; then ok "a histogram is a PNG"; else not_ok "a histogram is a PNG"; fi
    has "and an SVG" '<svg ' made/plots/t0.svg
    check "histograms of a checkpoint" "$tools/qat-inspect" a/last.ckpt --plot plots
    has "of its weights" 'plots/p[0-9]+.svg: conv1/weights, [0-9]+ values ' out.txt
    if grep -q '/q/range' out.txt; then not_ok "states of ranges are no values"; else ok "states of ranges are no values"; fi
    if [ -c /dev/full ] && mkdir none && ln -s /dev/full none/t0.png; then
        refuses "a histogram on a full disk" 1 "none/t0.png: " "$tools/qat-inspect" a.qm --plot none
        if grep -q 'none/t0' out.txt; then not_ok "it is not told as written"; else ok "it is not told as written"; fi
        rm none/t0.png && ln -s /dev/full none/t0.svg
        refuses "nor its SVG" 1 "none/t0.svg: " "$tools/qat-inspect" a.qm --plot none
    fi
else
    has "a build without cairo says so" 'this build cannot draw plots: it was made without cairo' err.txt
fi

# ---------------------------------------------------------------- damaged files
size=$(stat -c %s a.qm)
for n in 0 7 100 $((size / 2)) $((size - 1)); do
    head -c "$n" a.qm >cut.qm
    refuses "a .qm cut to $n bytes" 1 "cut.qm" "$tools/qat-run" cut.qm p.pgm
done
for at in 9 200 $((size / 2)) $((size - 1)); do
    byte=$(od -An -tu1 -j "$at" -N 1 a.qm | tr -d ' ')
    { head -c "$at" a.qm && printf "\\$(printf '%03o' $(((byte + 1) % 256)))" && tail -c +$((at + 2)) a.qm; } >bad.qm
    refuses "a .qm with byte $at changed" 1 "bad.qm" "$tools/qat-run" bad.qm p.pgm
    { head -c "$at" a/last.ckpt && printf X && tail -c +$((at + 2)) a/last.ckpt; } >bad.ckpt
    cmp -s bad.ckpt a/last.ckpt || refuses "a checkpoint with byte $at changed" 1 "bad.ckpt" "$tools/qat-export" bad.ckpt x.qm
done

# ---------------------------------------------------------------- stopped and resumed
# 20 epochs of 20 steps: a header and 400 rows.
wait_for_rows() { # wait_for_rows <file> <rows>
    for _ in $(seq 600); do
        [ -f "$1" ] && [ "$(wc -l <"$1")" -gt "$2" ] && return
        sleep 0.05
    done
}
for signal in TERM INT KILL; do
    # shellcheck disable=SC2086
    "$tools/qat-train" "$recipes/quickstart.ini" $small --out long --set train.epochs=20 \
        --set train.checkpoint_every=7 >long.txt 2>&1 &
    pid=$!
    wait_for_rows long/log.csv 12
    kill -$signal $pid
    wait $pid 2>/dev/null
    if [ "$(wc -l <long/log.csv)" -lt 401 ]; then ok "SIG$signal stops a run"; else
        not_ok "SIG$signal stops a run"
    fi
    check "resume after SIG$signal" train long --set train.epochs=20 --set train.checkpoint_every=7 --resume
    has "says where it goes on" '^continuing at step [0-9]+ of [0-9]+$' out.txt
    for file in log.csv last.ckpt best.ckpt; do mv long/$file $signal.$file; done
    rm -rf long
done
check "the uninterrupted run" train long --set train.epochs=20
for signal in TERM INT KILL; do
    for file in log.csv last.ckpt best.ckpt; do
        same "$file after SIG$signal and --resume" long/$file $signal.$file
    done
done
check "a run that keeps three checkpoints" train keep --set output.keep=3 --set train.checkpoint_every=10
if [ "$(cd keep && echo *.ckpt)" = "best.ckpt last.ckpt step-20.ckpt step-30.ckpt step-40.ckpt" ]; then
    ok "they are there"
else
    not_ok "they are there: $(ls keep)"
fi
same "last.ckpt is the last of them" keep/last.ckpt keep/step-40.ckpt
same "last.ckpt does not depend on what is kept" a/last.ckpt keep/last.ckpt
check "one of them is a checkpoint" "$tools/qat-eval" keep/step-30.ckpt --json
rm keep/last.ckpt
refuses "a folder with an older checkpoint" 1 "keep/" train keep
cp keep/step-30.ckpt keep/last.ckpt
check "going on from an older checkpoint" train keep --resume --set train.checkpoint_every=10
same "leads to the same end" a/last.ckpt keep/last.ckpt
check "a run in place of another, without its best" train keep --overwrite --set output.best=no
if [ "$(cd keep && echo *.ckpt)" = "last.ckpt" ]; then ok "no old one is left"; else
    not_ok "no old one is left: $(ls keep)"
fi
# shellcheck disable=SC2086
"$tools/qat-train" "$recipes/quickstart.ini" $small --out busy --set train.epochs=1000 >/dev/null 2>&1 &
pid=$!
wait_for_rows busy/log.csv 22
refuses "a second run in the same folder" 1 "busy: another run is writing there" train busy --resume --set train.epochs=1000
kill -KILL $pid
wait $pid 2>/dev/null
refuses "resume of another run" 2 "train.epochs is '21', but in the checkpoint's recipe '20': it is not the same run; to continue with other settings, start a run" train long --set train.epochs=21 --resume
check "resume of a finished run" train long --set train.epochs=20 --set train.checkpoint_every=7 --resume
has "has nothing left to do" '^step ([0-9]+) of \1: nothing left to do$' out.txt
refuses "resume of nothing" 1 "nothing/last.ckpt" train nothing --resume
exit $failed
