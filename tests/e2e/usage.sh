#!/usr/bin/env bash
# What the commands say about wrong options and wrong inputs, their exit status, and what they do if nothing can be
# written. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
recipes=${QAT_SOURCE_ROOT:?}/recipes
ops=$QAT_SOURCE_ROOT/tests/golden/data/ops
man=$QAT_SOURCE_ROOT/tools/man
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

all="qat-train qat-export qat-import qat-eval qat-run qat-bench qat-inspect qat-sweep qat-data qat-debug qat-report"

# ---------------------------------------------------------------- every option is in usage and manual
for tool in $all; do
    "$tools/$tool" --help >help.txt
    sed '/^$/,$d' help.txt >usage.txt
    sed 's/\\-/-/g' "$man/$tool.1" >man.txt
    missing=
    for option in $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' help.txt); do
        case $option in --help | --version) continue ;; esac
        grep -qE -- "$option([^a-z-]|$)" usage.txt || missing="$missing $option(usage)"
        sed '/^.SH DESCRIPTION/,$d' man.txt | grep -qE -- "$option([^a-z-]|$)" ||
            missing="$missing $option(synopsis)"
        sed '1,/^.SH OPTIONS/d' man.txt | grep -qE -- "$option([^a-z-]|$)" ||
            missing="$missing $option(options)"
    done
    if [ -z "$missing" ]; then ok "$tool: usage and manual have every option"; else
        not_ok "$tool: missing$missing"
    fi
done
for tool in qat-train qat-export qat-eval qat-run; do
    refuses "$tool --threads 257" 2 "1..256" "$tools/$tool" x y --threads 257
done
refuses "qat-bench --threads 257" 2 "1..256" "$tools/qat-bench" x --threads 257

# ---------------------------------------------------------------- a model to ask about
printf '[data]\nkind = digits\ntrain_count = 64\ntest_count = 20\n[model]\nfilters = 4\nstrides = 2
[train]\nsteps = 2\nbatch = 16\n[quant]\nenabled = yes\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "its export" "$tools/qat-export" run/last.ckpt a.qm --samples 4
{ printf 'P5 28 28 255\n' && head -c 784 /dev/zero; } >p.pgm

# ---------------------------------------------------------------- nothing can be written
full() { # full <what> <command...>: its output goes to a full disk
    what=$1
    shift
    "$@" >/dev/full 2>err.txt
    got=$?
    if [ $got = 1 ] && grep -qF "cannot write to standard output" err.txt; then ok "$what"; else
        not_ok "$what: exit status $got"
    fi
}
if [ -c /dev/full ]; then
    for tool in $all; do
        full "$tool --help to a full disk" "$tools/$tool" --help
    done
    full "inspect to a full disk" "$tools/qat-inspect" a.qm
    full "run to a full disk" "$tools/qat-run" a.qm p.pgm
    full "bench to a full disk" "$tools/qat-bench" a.qm --runs 1
    full "eval to a full disk" "$tools/qat-eval" a.qm --data digits --samples 5
    full "export to a full disk" "$tools/qat-export" run/last.ckpt b.qm --samples 2
    full "train to a full disk" "$tools/qat-train" small.ini --out full
    full "import to a full disk" "$tools/qat-import" "$ops/add_s8_06/model.tflite" c.qm
else
    echo "SKIP a full disk: no /dev/full here"
fi

# ---------------------------------------------------------------- values no option can have: 2
refuses "--set of an unknown key" 2 "unknown key train.epoch" "$tools/qat-train" small.ini --set train.epoch=3
refuses "--set without a value" 2 "expected section.key=value" "$tools/qat-train" small.ini --set train.epochs
refuses "--set beyond a range" 2 "expected an integer in" "$tools/qat-train" small.ini --set train.batch=0
printf '[train]\nepoch = 3\n' >wrong.ini
refuses "a wrong recipe" 2 "unknown key train.epoch" "$tools/qat-train" wrong.ini --set train.batch=8
for share in 0 1.5 half; do
    refuses "--central-crop $share" 2 "--central-crop $share: expected a share above 0, up to 1" \
        "$tools/qat-eval" a.qm --data folder:x --central-crop $share
done
for isa in "qat-run a.qm p.pgm" "qat-eval a.qm --data digits" "qat-bench a.qm"; do
    # shellcheck disable=SC2086
    refuses "--isa avx9 of ${isa%% *}" 2 "--isa avx9: this build does not know it; this processor runs: " "$tools/"$isa --isa avx9
done
refuses "--data of an unknown kind" 2 "--data jpegs: expected KIND[:PATH], where KIND is one of digits|" \
    "$tools/qat-eval" a.qm --data jpegs
refuses "--ptq of an unknown kind" 2 "--ptq digit: expected recipe or KIND[:PATH]" \
    "$tools/qat-export" run/last.ckpt b.qm --ptq digit
refuses "--cpus a" 2 "--cpus a: expected numbers and ranges" "$tools/qat-bench" a.qm --cpus a

# ---------------------------------------------------------------- one of several processes: 1
# Another launcher than Open MPI's: refused with MPI and without.
for tool in "qat-train small.ini --out one" "qat-export run/last.ckpt b.qm"; do
    # shellcheck disable=SC2086
    refuses "${tool%% *}, one of two" 1 "started as one of several processes, but " \
        env PMI_SIZE=2 ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" "$tools/"$tool
done

# ---------------------------------------------------------------- classes by other names
classes_of() { # classes_of <folder> <names...>: a set of pictures, one a class
    folder=$1
    shift
    for class in "$@"; do
        mkdir -p "$folder/train/$class" "$folder/val/$class"
        cp p.pgm "$folder/train/$class/" && cp p.pgm "$folder/val/$class/"
    done
}
classes_of same 0 1 2 3 4 5 6 7 8 9
classes_of other a b c d e f g h i j
classes_of moved + 0 1 2 3 4 5 6 7 8
classes_of few 0 1 2
printf '[data]\nkind = folder\npath = moved\nheight = 28\nwidth = 28\nchannels = 1\n' >moved.ini
check "the network's classes" "$tools/qat-eval" a.qm --data folder:same
if [ -s err.txt ]; then not_ok "no warning: $(cat err.txt)"; else ok "no warning"; fi
check "classes of other names" "$tools/qat-eval" a.qm --data folder:other
has "are told" "^warning: folder .*: class 0 is 'a', but the network calls it '0'$" err.txt
refuses "classes in another order" 1 "class 0 is '+', but the network calls it '0'" "$tools/qat-eval" a.qm --data folder:moved
refuses "the same on the checkpoint" 1 "class 0 is '+', but the network calls it '0'" "$tools/qat-eval" run/last.ckpt --recipe moved.ini
refuses "fewer classes" 1 "3 classes, but the network has 10" "$tools/qat-eval" a.qm --data folder:few

# ---------------------------------------------------------------- files that are something else, or not whole
echo short >short
head -c 1000 a.qm >cut.qm
head -c 100 a.qm >head.qm
{ head -c 999 a.qm && printf x && tail -c +1001 a.qm; } >changed.qm
bytes=$(wc -c <a.qm)
refuses "a .qm as --init" 1 "a.qm: weights come from a checkpoint or a .npz, but this is a .qm, whose weights are integers" \
    "$tools/qat-train" small.ini --out other --init a.qm
refuses "a text as --init" 1 "short: weights come from a checkpoint or a .npz, but this is neither" "$tools/qat-train" small.ini --out other --init short
refuses "export of a text" 1 "short: neither a checkpoint nor a .qm" "$tools/qat-export" short other.qm
refuses "export of a text's floats" 1 "short: neither a checkpoint nor a .qm" "$tools/qat-export" short other.npz --float
refuses "export of a .tflite" 1 "make a .qm of it first: qat-import" "$tools/qat-export" "$ops/add_s8_06/model.tflite" other.qm
refuses "a .qm that was cut" 1 "cut.qm: truncated file: it has 1000 bytes, but its header says $bytes" "$tools/qat-run" cut.qm p.pgm
refuses "within its header" 1 "head.qm: truncated file: it has 100 bytes, but the header of a .qm alone has 192" "$tools/qat-run" head.qm p.pgm
refuses "a .qm that was changed" 1 "changed.qm: checksum error: the CRC-32 of its content is " "$tools/qat-run" changed.qm p.pgm

# ---------------------------------------------------------------- keys without effect
"$tools/qat-train" small.ini --dry-run --set train.init_skip=logits --set quant.enabled=no --set quant.forward=integer \
    >out.txt 2>err.txt
has "a key without effect is told" '^warning: --set train.init_skip=logits: train.init_skip has no effect without train.init$' err.txt
has "another one" '^warning: --set quant.forward=integer: quant.forward has no effect without quant.enabled = yes$' err.txt
sed '/^enabled/d' small.ini >forgotten.ini
check "bits, but no quantization" "$tools/qat-train" forgotten.ini --dry-run --set quant.weight_bits=4 --set quant.ranges=lsq
has "is told" 'quant.weight_bits has no effect on the training without quant.enabled = yes .qat-export --ptq reads it.$' err.txt
has "so are ranges" 'quant.ranges has no effect without quant.enabled = yes$' err.txt
check "frozen layers" "$tools/qat-train" small.ini --out frozen --set train.freeze=conv1
has "are named" '^frozen \(train.freeze\): [0-9]+ parameters, [0-9]+ values: conv1/weights, ' out.txt
check "frozen layers of a dry run" "$tools/qat-train" small.ini --dry-run --set train.freeze=conv1
has "are named, too" '^frozen \(train.freeze\): [0-9]+ parameters, [0-9]+ values: conv1/weights, ' out.txt
check "a run that ends before its quantization" "$tools/qat-train" small.ini --out early --set quant.quant_delay=5
has "is told" '^qat-train: warning: quantization of weights starts at step 5, but the run ends at 2$' err.txt
check "its export" "$tools/qat-export" early/last.ckpt early.qm --samples 4
has "tells it too" 'trained in float until the end: quantization starts at step 5, but this is step 2$' err.txt
check "a milestone behind the run's end" "$tools/qat-train" small.ini --out late --set train.schedule=piecewise --set train.milestones=1,9
has "is told" '^qat-train: warning: train.milestones has step 9, but the run ends at 2$' err.txt
check "a plateau that nobody looks for" "$tools/qat-train" small.ini --out flat --set train.stop_patience=2 --set train.eval_every=3
has "is told" '^qat-train: warning: a plateau cannot be seen: train.eval_every is 3 steps, and the run ends at 2$' err.txt
refuses "a wrong choice" 2 "; the nearest is plateau" "$tools/qat-train" small.ini --set train.schedule=plateu
refuses "anchors that shrink" 2 "--set detect.max_scale=0.1: detect.max_scale = 0.1 cannot be combined with detect.min_scale = 0.2" \
    "$tools/qat-train" small.ini --set detect.max_scale=0.1
refuses "milestones out of order" 2 "train.milestones = 2,1: step 2 of the list is not later than the one before" \
    "$tools/qat-train" small.ini --set train.schedule=piecewise --set train.milestones=2,1
refuses "plateaus without evaluations" 2 "it needs evaluations" \
    "$tools/qat-train" small.ini --set train.eval_every=never --set train.schedule=plateau
refuses "--set of data" 2 "only quant.KEY can be set here; --samples N limits the data" \
    "$tools/qat-eval" a.qm --data digits --set data.test_count=60
refuses "a recipe's name as data" 2 "the word recipe means the training data of the checkpoint's own" \
    "$tools/qat-export" run/last.ckpt b.qm --ptq small.ini
refuses "more than the whole run" 2 "quant.quant_delay = 160%: expected" \
    "$tools/qat-train" small.ini --out early --overwrite --set quant.quant_delay=160%
freezes="batch norm can freeze only when weights are quantized"
refuses "quantization never, and batch norm frozen" 2 \
    "--set quant.bn_freeze_delay=2: quant.bn_freeze_delay = 2, step 2: $freezes (quant.quant_delay = never)" \
    "$tools/qat-train" small.ini --out never --set quant.quant_delay=never --set quant.bn_freeze_delay=2
refuses "batch norm frozen too early" 2 "quant.bn_freeze_delay = 1, step 1: $freezes (quant.weight_delay = 100%, step 2)" \
    "$tools/qat-train" small.ini --out early --overwrite --set quant.bn_freeze_delay=1 --set quant.weight_delay=100%
check "a dry run has no steps, so a moment in steps may stand beside a share" "$tools/qat-train" small.ini --dry-run \
    --set quant.quant_delay=100 --set quant.bn_freeze_delay=80%
printf '[quant]\nquant_delay = 100\nbn_freeze_delay = 80%%\n' | cat small.ini - >moments.ini
check "nor has a drawing" "$tools/qat-inspect" moments.ini --graph
refuses "a dry run from a file that is not there" 1 "train.init = no.ckpt: No such file" \
    "$tools/qat-train" small.ini --dry-run --set train.init=no.ckpt
refuses "a teacher that is not there" 1 "distill.teacher = no.ckpt: No such file" \
    "$tools/qat-train" small.ini --dry-run --set distill.teacher=no.ckpt
refuses "a layer's key with a dot" 2 "a layer's key is quant.layer conv1.weight_bits" \
    "$tools/qat-train" small.ini --dry-run --set quant.layer.conv1.weight_bits=4
refuses "a misspelt end of the network" 2 "[quant.layer @frist]: no layer matches; the nearest is @first" \
    "$tools/qat-train" small.ini --dry-run --set "quant.layer @frist.weight_bits=4"

# ---------------------------------------------------------------- options that would be ignored
refuses "a crop for a checkpoint" 2 "--central-crop works with a .qm only" \
    "$tools/qat-eval" run/last.ckpt --data folder:x --central-crop 0.5
refuses "a crop of what is no file" 2 "--central-crop needs --data folder:DIR" \
    "$tools/qat-eval" a.qm --data digits --central-crop 0.5
refuses "a limit of pixels of what is no file" 2 "--max-pixels: digits has no picture files" \
    "$tools/qat-eval" a.qm --data digits --max-pixels 5
refuses "a limit of no pixels" 2 "--max-pixels 0: expected" "$tools/qat-run" a.qm p.pgm --max-pixels 0
refuses "a batch that nobody reads" 2 "--batch needs --ranges batch or worst-case" "$tools/qat-eval" a.qm --data digits --batch 5
refuses "real numbers that nobody writes" 2 "--real needs --output" "$tools/qat-run" a.qm p.pgm --real
for option in "--json" "--top 2"; do
    # shellcheck disable=SC2086
    refuses "$option of what is not printed" 2 "${option%% *} tells an answer, but --output writes it to a file" \
        "$tools/qat-run" a.qm --input x.npy --output y.npy $option
done
for numbers in "" 1, 1,2, ,1 1,,2 1,2,3,4; do
    refuses "--mean '$numbers'" 2 "--mean $numbers: expected a number, or one for each channel" \
        "$tools/qat-import" "$ops/add_s8_06/model.tflite" no.qm --mean "$numbers"
done
refuses "a form of a float network" 2 "--form is of integers" \
    "$tools/qat-export" run/last.ckpt no.onnx --float --form integer
refuses "threads of a .qm's export" 2 "it has its integers, and takes --format" "$tools/qat-export" a.qm no.onnx --threads 2
refuses "threads of a float network's export" 2 "it takes --raw-params, --format" \
    "$tools/qat-export" run/last.ckpt no.npz --float --threads 2
refuses "seconds without a measurement" 2 "of --bench, which is not given" "$tools/qat-sweep" small.ini --out no --seconds 2
refuses "a path of drawn data" 2 "data digits:foo: data of kind digits are drawn, from no path" \
    "$tools/qat-eval" a.qm --data digits:foo
refuses "an unknown quantizer" 2 "there is no such quantizer; the nearest is lsq (of ema, tqt, lsq, pact, none)" \
    "$tools/qat-train" small.ini --dry-run --set quant.activation_ranges=lsp
refuses "no epochs and no weights" 2 "train.epochs = 0 is less than one step: without training, weights come from a file" \
    "$tools/qat-train" small.ini --out no --set train.steps=0 --set train.epochs=0
refuses "--set of no data" 2 "--set train.lr=1: only data.KEY can be set here" "$tools/qat-data" list digits --set train.lr=1
for option in --resume --overwrite "--out no" "--threads 1" "--progress none"; do
    # shellcheck disable=SC2086
    check "a dry run of a command with $option" "$tools/qat-train" small.ini --dry-run $option
done
if [ -e no ]; then not_ok "a dry run makes a folder"; else ok "a dry run makes no folder"; fi
refuses "a model in place of a checkpoint" 2 "run/last.ckpt is a checkpoint; it would be overwritten" \
    "$tools/qat-import" "$ops/add_s8_06/model.tflite" run/last.ckpt
check "a model of two inputs" "$tools/qat-import" "$ops/add_s8_06/model.tflite" two.qm --mean 0
refuses "one picture for it" 1 "p.pgm is one input, but the model takes 2: give --input X.npy for each" \
    "$tools/qat-run" two.qm p.pgm --output no.npy
refuses "inputs of a checkpoint" 2 "--dump-inputs works with a .qm only" "$tools/qat-eval" run/last.ckpt --dump-inputs d

# ---------------------------------------------------------------- files of another kind
for tool in "qat-run TFLITE p.pgm" "qat-eval TFLITE --data digits" "qat-bench TFLITE" \
    "qat-bench TFLITE --load" "qat-inspect TFLITE"; do
    words=${tool/TFLITE/$ops/add_s8_06/model.tflite}
    # shellcheck disable=SC2086
    refuses "${tool%% *} of a .tflite" 1 "a TensorFlow Lite model; make a .qm of it first: qat-import" "$tools/"$words
done
refuses "qat-run of a checkpoint" 1 "a checkpoint; make a .qm of it first: qat-export" "$tools/qat-run" run/last.ckpt p.pgm
{ cat small.ini && printf '[plugin]\npath = ${HOME}/layers.so\n'; } >plugged.ini
refuses "a plugin whose path has another variable" 2 '${HOME}/layers.so: ${QAT_DATA} is the only variable' \
    "$tools/qat-inspect" plugged.ini --graph
refuses "data that are not there" 1 '(${QAT_DATA} is /nowhere, from the environment)' \
    env QAT_DATA=/nowhere "$tools/qat-train" "$recipes/mnist.ini" --dry-run
refuses "data that are not there, nor said" 1 '(${QAT_DATA} is ../shared/data: set QAT_DATA to another folder)' \
    env -u QAT_DATA "$tools/qat-train" "$recipes/mnist.ini" --dry-run
exit $failed
