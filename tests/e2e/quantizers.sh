#!/usr/bin/env bash
# Ranges in recipes: learned ranges, a plugin's ranges, settings of single layers, layers that stay in float, batch
# norm's averages taken anew, and the log of ranges. Exported models equal the exact evaluation.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
examples=$QAT_BUILD_ROOT/examples
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

cat >ranges.ini <<INI
[data]
kind = digits
train_count = 640
test_count = 100
[model]
arch = convnet
filters = 8, 8
[train]
epochs = 2
batch = 16
lr = 0.02
[quant]
enabled = yes
quant_delay = 10
learn_delay = 20
bn_freeze_delay = 60
range_log_every = 20
weight_bits = 4
activation_bits = 4
[plugin]
path = $examples/libthree_sigma.so
INI

# A checkpoint names its plugin; the commands load it because they are told to.
plugin=(--plugin "$examples/libthree_sigma.so")
for layout in uint8 int8; do
    for ranges in tqt lsq three_sigma; do
        scheme="$layout, $ranges"
        run=$layout-$ranges
        check "$scheme: qat-train" "$tools/qat-train" ranges.ini --set "quant.layout=$layout" \
            --set "quant.ranges=$ranges" --out "$run"
        check "$scheme: qat-export" "$tools/qat-export" "$run/last.ckpt" "${plugin[@]}" "$run.qm"
        has "$scheme: no byte differs" 'bytes compared, 0 differing$' out.txt
        check "$scheme: qat-eval of the .qm" "$tools/qat-eval" "$run.qm" --recipe ranges.ini --json
        sed 's/.*"top1": \([0-9.]*\),.*/\1/' out.txt >engine.txt
        check "$scheme: qat-eval of the checkpoint" "$tools/qat-eval" "$run/last.ckpt" "${plugin[@]}" --json
        sed 's/.*"n": 100, "top1": \([0-9.]*\),.*/\1/' out.txt >exact.txt
        same "$scheme: engine and exact evaluation agree" exact.txt engine.txt
        has "$scheme: ranges are logged" "^80,conv2/weights/q,weights,$ranges,4," "$run/quant.csv"
    done
done

check "learned ranges begin anew in another layout" "$tools/qat-train" ranges.ini --init uint8-tqt/last.ckpt \
    --set quant.layout=int8 --set quant.ranges=tqt --out anew
refuses "averages anew, calibrated" 2 "--reestimate-bn cannot be combined with --ptq" \
    "$tools/qat-export" uint8-tqt/last.ckpt "${plugin[@]}" no.qm --ptq recipe --reestimate-bn 2
for ranges in batch worst-case; do
    check "--ranges $ranges after learning" "$tools/qat-eval" uint8-tqt/last.ckpt "${plugin[@]}" --ranges $ranges \
        --set quant.layout=int8
done

check "powers of two" "$tools/qat-train" ranges.ini --set quant.ranges=tqt \
    --set quant.power_of_two=yes --out powers
check "their export" "$tools/qat-export" powers/last.ckpt "${plugin[@]}" powers.qm
has "powers of two: no byte differs" 'bytes compared, 0 differing$' out.txt

check "one thread" "$tools/qat-train" ranges.ini --set quant.ranges=lsq --out one --threads 1
check "two threads" "$tools/qat-train" ranges.ini --set quant.ranges=lsq --out two --threads 2
same "two threads log the ranges that one does" one/quant.csv two/quant.csv

learned() { # learned <folder> <options...>: only activations are quantized
    "$tools/qat-train" ranges.ini --set quant.ranges=lsq --set quant.quant_delay=0 --set quant.weight_delay=never \
        --set quant.bn_freeze_delay=never --out "$@"
}
check "weights that are never quantized" learned never --set quant.learn_delay=auto
check "learning after an epoch" learned epoch --set 'quant.learn_delay=1 epochs'
same "ranges of activations learn after an epoch all the same" never/quant.csv epoch/quant.csv
early() { # early <folder> <options...>
    "$tools/qat-train" ranges.ini --set quant.ranges=lsq --set quant.quant_delay=30 --out "$@"
}
check "learning before quantization" early before --set quant.learn_delay=1
check "learning with it" early with --set quant.learn_delay=30
same "ranges are observed until then" before/quant.csv with/quant.csv

# First and last layer at 8 bits.
cat >>ranges.ini <<INI
[quant.layer @first]
weight_bits = 8
activation_bits = 8
[quant.layer @last]
weight_bits = 8
activation_bits = 8
INI
check "first and last layer at 8 bits" "$tools/qat-train" ranges.ini --out ends
check "their export" "$tools/qat-export" ends/last.ckpt "${plugin[@]}" ends.qm
has "no byte differs" 'bytes compared, 0 differing$' out.txt
has "the first layer's weights have 8 bits" '^80,conv1/weights/q,weights,ema,8,' ends/quant.csv
has "the second's have 4" '^80,conv2/weights/q,weights,ema,4,' ends/quant.csv
has "the last one's have 8" '^80,logits/weights/q,weights,ema,8,' ends/quant.csv

# Batch norm's averages, anew.
check "export with new averages" "$tools/qat-export" ends/last.ckpt "${plugin[@]}" anew.qm --reestimate-bn 10
has "no byte differs either" 'bytes compared, 0 differing$' out.txt
if cmp -s ends.qm anew.qm; then not_ok "they change the model"; else ok "they change the model"; fi

# Left in float: analysis only.
check "a layer in float" "$tools/qat-train" ranges.ini --set "quant.layer conv2.float=yes" --out floating
refuses "its export" 1 "layers left in float ([quant.layer ...] float = yes) cannot become integers: conv2" "$tools/qat-export" floating/last.ckpt "${plugin[@]}" floating.qm
check "qat-inspect shows it all the same" "$tools/qat-inspect" floating/last.ckpt "${plugin[@]}"
has "and says what it is not" '^layers left in float .* cannot become integers: conv2$' out.txt
check "its evaluation" "$tools/qat-eval" floating/last.ckpt "${plugin[@]}" --json
has "is a simulation, and says so" '"simulated_top1": .*"left_in_float": "conv2"' out.txt

layouts=$(sanitized int8 'uint8 int8')
# Schemes to compare with, and a learned range with the lowest code, run on integers ...
sed '/^\[quant.layer/,$d; s/^bn_freeze_delay.*/bn_freeze_delay = 0/; s/^quant_delay.*//' ranges.ini >schemes.ini
for layout in $layouts; do
    for scheme in $(sanitized 'bwn twn inq apot tqt_full' 'bwn twn inq dorefa weight_norm apot tqt_full'); do
        run=$layout-$scheme
        check "$run: qat-train" "$tools/qat-train" schemes.ini --set "quant.layout=$layout" \
            --set "quant.weight_ranges=$scheme" --set train.epochs=1 --out "$run"
        check "$run: qat-export" "$tools/qat-export" "$run/last.ckpt" "${plugin[@]}" "$run.qm"
        has "$run: no byte differs" 'bytes compared, 0 differing$' out.txt
    done
done

# Normalised weights, and four codes of 2 bits, with batch norms that use the statistics of the batch for most of the run.
for scheme in $(sanitized 'dorefa weight_norm lsq_full' 'dorefa weight_norm apot tqt_full lsq_full'); do
    for layout in $layouts; do
        run=norms-$layout-$scheme
        check "$run: qat-train" "$tools/qat-train" schemes.ini --set quant.bn_freeze_delay=50 --set quant.weight_bits=2 \
            --set "quant.layout=$layout" --set "quant.weight_ranges=$scheme" --set quant.fraction=15 --out "$run"
        check "$run: qat-export" "$tools/qat-export" "$run/last.ckpt" "${plugin[@]}" "$run.qm"
        has "$run: no byte differs" 'bytes compared, 0 differing$' out.txt
        has "$run: certified" '^certified against the checkpoint: .* [0-9]+ weight codes' out.txt
    done
done
for scheme in $(sanitized dorefa 'dorefa weight_norm apot bwn twn'); do
    case $scheme in weight_norm | twn) layout=uint8 ;; *) layout=int8 ;; esac
    check "$scheme on integers: qat-train" "$tools/qat-train" schemes.ini --set quant.bn_freeze_delay=50 --set quant.weight_bits=2 \
        --set "quant.layout=$layout" --set "quant.weight_ranges=$scheme" --set quant.forward=integer --out "integer-$scheme"
    check "$scheme on integers: qat-export" "$tools/qat-export" "integer-$scheme/last.ckpt" "${plugin[@]}" "integer-$scheme.qm"
    has "$scheme on integers: what was trained is what runs" '^training on integers against engine: .* 0 differing$' out.txt
done
refuses "dorefa with 8 bits" 2 "conv1: quant.weight_bits = 8, but weights by dorefa have 2 to 7 bits" \
    "$tools/qat-train" schemes.ini --set quant.weight_ranges=dorefa --set quant.weight_bits=8 --out bad

# ... others do not, and are told apart.
check "float activations" "$tools/qat-train" schemes.ini --set quant.weight_ranges=bwn \
    --set quant.activation_ranges=none --set train.epochs=1 --out without
refuses "their export" 1 "layers of float activations (activation_ranges = none) cannot become integers: conv1, conv2, logits" \
    "$tools/qat-export" without/last.ckpt "${plugin[@]}" no.qm
check "their evaluation" "$tools/qat-eval" without/last.ckpt "${plugin[@]}" --json
has "is a simulation, and says of what" '"simulated_top1": .*"left_in_float": "conv1, conv2, logits"' out.txt
check "the same in words" "$tools/qat-eval" without/last.ckpt "${plugin[@]}"
has "as the export says it" '^simulated in float32: layers of float activations \(activation_ranges = none\) cannot become' out.txt
check "their ranges found afterwards" "$tools/qat-export" without/last.ckpt "${plugin[@]}" with.qm --ptq recipe
check "scales for every 4 inputs" "$tools/qat-train" schemes.ini --set quant.weight_ranges=fgq \
    --set "quant.layer @first.weight_ranges=ema" --set train.epochs=1 --out groups
refuses "their export" 1 "one for an output channel, cannot become integers: conv2, logits" \
    "$tools/qat-export" groups/last.ckpt "${plugin[@]}" no.qm
check "powers of two of 5 bits, in part" "$tools/qat-train" schemes.ini --set quant.weight_ranges=inq \
    --set "quant.layer conv2.weight_bits=5" --set train.epochs=1 --out five
refuses "their export" 1 "those of 8-bit weights 127, cannot become integers: conv2" \
    "$tools/qat-export" five/last.ckpt "${plugin[@]}" no.qm
check "an unfinished scheme" "$tools/qat-train" schemes.ini --set quant.weight_ranges=inq \
    --set "quant.inq_stages=0, 1, 2, 1000" --set train.epochs=1 --out unfinished
refuses "its export" 1 'the quantizer inq makes' "$tools/qat-export" unfinished/last.ckpt "${plugin[@]}" no.qm
check "its contents" "$tools/qat-inspect" unfinished/last.ckpt "${plugin[@]}"
has "say why there are no integers" 'the quantizer inq makes' out.txt
check "its accuracy" "$tools/qat-eval" unfinished/last.ckpt "${plugin[@]}"
has "is that of the simulation" '^simulated in float32: .*the quantizer inq makes' out.txt
check "its accuracy as JSON" "$tools/qat-eval" unfinished/last.ckpt "${plugin[@]}" --json
has "has the reason, too" '"simulated_top1": .*"why_simulated": ".*the quantizer inq makes' out.txt
stages() { # stages <folder> <options...>
    "$tools/qat-train" schemes.ini --set quant.weight_ranges=inq --set quant.quant_delay=40 --set quant.bn_freeze_delay=40 --out "$@"
}
check "stages of the second epoch" stages halves
check "and given ones" stages given --set "quant.inq_stages=40, 50, 60, 70"
same "they are its quarters" halves/quant.csv given/quant.csv
same "with the same losses" <(cut -d, -f1-4 halves/log.csv) <(cut -d, -f1-4 given/log.csv)
refuses "three stages" 2 'quant.inq_stages: 3 moments, not 4' \
    "$tools/qat-train" schemes.ini --set "quant.inq_stages=0, 1, 2" --out bad
refuses "batch norm that moves frozen weights" 2 'conv1: inq freezes weights into which batch norm is folded' \
    "$tools/qat-train" schemes.ini --set quant.weight_ranges=inq --set quant.bn_freeze_delay=10 --out bad

# Training on integers: the forward pass is the engine's, byte for byte. Without a delay only codes are kept.
for layout in $layouts; do
    for ranges in tqt lsq lsq_full pact three_sigma ema,quant.power_of_two=yes; do
        delay=$([ $layout = int8 ] && echo 0 || echo 10)
        run=integer-$layout-$ranges
        settings=(--set "quant.layout=$layout" --set quant.forward=integer --set quant.input_bits=3 --set quant.quant_delay=$delay)
        for setting in $(tr , ' ' <<<"quant.activation_ranges=${ranges%_full}"); do
            settings+=(--set "$setting")
        done
        case $ranges in pact) by=tqt ;; *) by=${ranges%%,*} ;; esac
        settings+=(--set "quant.weight_ranges=$by")
        check "$run: qat-train" "$tools/qat-train" ranges.ini "${settings[@]}" --out "$run" --threads 1
        check "$run: qat-export" "$tools/qat-export" "$run/last.ckpt" "${plugin[@]}" "$run.qm"
        bytes=$(sed -n 's/^engine against exact evaluation: \([0-9]*\) bytes compared, 0 differing$/\1/p' out.txt)
        has "$run: what was trained is what runs" "^training on integers against engine: ${bytes:-no} bytes compared, 0 differing$" out.txt
        has "$run: so is its simulation" '^float32 simulation against engine: 0 of [1-9]' out.txt
        check "$run: simulated" "$tools/qat-train" ranges.ini "${settings[@]}" --set quant.forward=simulated --out "$run-simulated"
        same "$run: the same losses" <(cut -d, -f1-4 "$run/log.csv") <(cut -d, -f1-4 "$run-simulated/log.csv")
        check "$run: with two threads" "$tools/qat-train" ranges.ini "${settings[@]}" --out "$run-2" --threads 2
        same "$run: the same checkpoint" "$run/last.ckpt" "$run-2/last.ckpt"
    done
done
check "--json" "$tools/qat-export" integer-int8-tqt/last.ckpt "${plugin[@]}" integer.qm --json
has "  has both counts" '"trained_bytes": [1-9][0-9]*, "trained_differing": 0,' out.txt
check "how much each layer costs" "$tools/qat-debug" integer-int8-tqt/last.ckpt "${plugin[@]}" --sensitivity costs.csv
check "in another profile" "$tools/qat-export" integer-int8-tqt/last.ckpt "${plugin[@]}" integer.qm --profile tflite
if grep -q 'training on integers' out.txt; then not_ok "  the integers are others"; else ok "  the integers are others"; fi
has "  and so are those that are simulated" '^float32 simulation against engine: 0 of [1-9]' out.txt
check "fake quantization alone" "$tools/qat-train" ranges.ini --set quant.weight_bits=4 --set quant.input_bits=4 \
    --set quant.fraction=0 --set quant.forward=fake_quant --set quant.weight_ranges=tqt --out alone
check "  its export" "$tools/qat-export" alone/last.ckpt "${plugin[@]}" alone.qm
has "  is far from the engine" '^float32 simulation against engine: [1-9][0-9]* of [1-9]' out.txt

# Weights that oscillate are frozen; the codes in the model are those that were frozen.
sed '/^\[quant.layer/,$d; s/^weight_bits.*/weight_bits = 3/; s/^lr .*/lr = 0.2/' ranges.ini >freeze.ini
# So it is if they are trained on integers: there, the model is what was trained, byte for byte.
for layout in $layouts; do
    for ranges in ema lsq three_sigma lsq,quant.forward=integer three_sigma,quant.forward=integer; do
        run=freeze-$layout-${ranges/,quant.forward=/-}
        freezing=(--set "quant.layout=$layout" --set quant.freeze_threshold=0.05 --set quant.freeze_threshold_end=0.015)
        for setting in $(tr , ' ' <<<"quant.ranges=$ranges"); do
            freezing+=(--set "$setting")
        done
        check "$run: qat-train" "$tools/qat-train" freeze.ini "${freezing[@]}" --out "$run" --threads 1
        check "$run: qat-export" "$tools/qat-export" "$run/last.ckpt" "${plugin[@]}" "$run.qm"
        has "$run: no byte differs" 'bytes compared, 0 differing$' out.txt
        has "$run: certified" '^certified against the checkpoint: .* [0-9]+ weight codes' out.txt
        case $run in *integer) has "$run: what was trained is what runs" '^training on integers against engine: .* 0 differing$' out.txt ;; esac
        check "$run: with two threads" "$tools/qat-train" freeze.ini "${freezing[@]}" --out "$run-2" --threads 2
        same "$run: the same checkpoint" "$run/last.ckpt" "$run-2/last.ckpt"
    done
done
check "frozen codes are not those of a calibration" "$tools/qat-export" freeze-int8-lsq/last.ckpt "${plugin[@]}" \
    calibrated.qm --ptq recipe
refuses "schemes freeze no weights" 2 "conv1: quant.freeze_threshold cannot freeze weights by twn" \
    "$tools/qat-train" freeze.ini --set quant.weight_ranges=twn --set quant.freeze_threshold=0.1 --out bad

# Bits that fall. Inside the schedule a checkpoint has its bits; the best one is of the last.
sed '/^weight_bits/d; /^activation_bits/d; /^epochs/d; s/^lr .*/lr = 0/' freeze.ini >falls.ini
cat >>falls.ini <<'INI'
[quant]
weight_bits = 2
activation_bits = 8
input_bits = 3
weight_bits_schedule = 8 until 30, 4 until 50
activation_bits_schedule = 6 until 40
fraction = 15
[train]
steps = 60
eval_every = 20
checkpoint_every = 20
[output]
keep = 9
INI
for layout in $layouts; do
    for ranges in ema lsq tqt lsq_full; do
        run=falls-$layout-$ranges
        check "$run: qat-train" "$tools/qat-train" falls.ini --set "quant.layout=$layout" --set "quant.ranges=${ranges%_full}" \
            --set "quant.weight_ranges=$ranges" \
            --set "quant.layer logits.weight_bits=5" --out "$run"
        has "$run: says when" '^step 50: weights have the bits of the model$' out.txt
        for step in 20:8:8 40:4:5 60:2:5; do
            IFS=: read -r at bits logits <<<"$step"
            check "$run, step $at: qat-export" "$tools/qat-export" "$run/step-$at.ckpt" "${plugin[@]}" "$run.qm"
            has "$run, step $at: no byte differs" 'bytes compared, 0 differing$' out.txt
            has "$run, step $at: certified" '^certified against the checkpoint: .* [0-9]+ weight codes' out.txt
            has "$run, step $at: conv2 has $bits bits" "^$at,conv2/weights/q,weights,$ranges,$bits," "$run/quant.csv"
            has "$run, step $at: logits has $logits bits" "^$at,logits/weights/q,weights,$ranges,$logits," "$run/quant.csv"
        done
        same "$run: the best has the last bits" "$run/step-60.ckpt" "$run/best.ckpt"
    done
done
refuses "a schedule that rises" 2 "quant.weight_bits_schedule = 4 until 10, 8 until 20: expected fewer bits in each stage" \
    "$tools/qat-train" falls.ini --set "quant.weight_bits_schedule=4 until 10, 8 until 20" --out bad
refuses "stages out of order" 2 "expected stages in their order" \
    "$tools/qat-train" falls.ini --set "quant.weight_bits_schedule=8 until 20, 4 until 10" --out bad
refuses "no number of bits" 2 "expected BITS until WHEN" \
    "$tools/qat-train" falls.ini --set "quant.activation_bits_schedule=9 until 20" --out bad
check "a schedule on integers, and weights drawn to their codes" "$tools/qat-train" falls.ini --set quant.forward=integer \
    --set quant.ranges=lsq --set quant.dampen=0.01 --out falls-integer
for step in 20 40 60; do
    check "on integers, step $step: qat-export" "$tools/qat-export" "falls-integer/step-$step.ckpt" "${plugin[@]}" falls.qm
    has "on integers, step $step: what was trained is what runs" '^training on integers against engine: .* 0 differing$' out.txt
done
refuses "a schedule of inq" 2 "conv1: quant.weight_bits_schedule cannot be combined with weights by inq" \
    "$tools/qat-train" falls.ini --set quant.weight_ranges=inq --set quant.quant_delay=0 --set quant.bn_freeze_delay=0 --out bad

# What is wrong is named, with its line.
refuses "a dry run sees it, too" 2 "weights by apot have 2 to 5 bits" \
    "$tools/qat-train" ranges.ini "${plugin[@]}" --set quant.weight_ranges=apot --set quant.weight_bits=6 --dry-run
refuses "inputs of one bit" 2 "quant.input_bits = 1: expected 0 or 2 to 8" "$tools/qat-train" ranges.ini --set quant.input_bits=1 --out bad
refuses "the labels" 2 "[quant.layer label]: no layer matches" "$tools/qat-train" ranges.ini --set "quant.layer label.activation_bits=4" --out bad
refuses "a quantizer of activations" 2 "quant.ranges = pact: this quantizer is not for weights: set activation_ranges = pact" \
    "$tools/qat-train" ranges.ini --set quant.ranges=pact --out bad
check "ranges that nothing learns" "$tools/qat-train" ranges.ini "${plugin[@]}" --set quant.learn_delay=30 --set quant.range_rate=2 --dry-run
has "  learn_delay has no effect" "quant.learn_delay has no effect with ranges that are not learned" err.txt
has "  nor has range_rate" "quant.range_rate has no effect with ranges that are not learned" err.txt
sed 's/^enabled = yes/enabled = no/' ranges.ini >off.ini
check "layers of a float network" "$tools/qat-train" off.ini "${plugin[@]}" --dry-run
has "  sections have no effect" "off.ini:[0-9]+: \[quant.layer @first\] has no effect without quant.enabled = yes" err.txt
refuses "a pattern that matches nothing" 2 '[quant.layer conv22]: no layer matches; the nearest is conv2' \
    "$tools/qat-train" ranges.ini --set "quant.layer conv22.weight_bits=4" --out bad
printf '[quant.layer conv9]\nweight_bits = 3\n' >>ranges.ini
refuses "a pattern of the file" 2 'ranges.ini:28: [quant.layer conv9]: no layer matches; the nearest is conv1' \
    "$tools/qat-train" ranges.ini --out bad
refuses "an unknown quantizer" 2 'quant.ranges = tqr: there is no such quantizer; the nearest is tqt' \
    "$tools/qat-train" ranges.ini --set quant.ranges=tqr --out bad
refuses "an unknown key" 2 'unknown key weight_bit in [quant.layer conv1]; the nearest is weight_bits' \
    "$tools/qat-train" ranges.ini --set "quant.layer conv1.weight_bit=4" --out bad
# ---------------------------------------------------------------- 16-bit activations (TensorFlow Lite's 16x8)
cat >wide.ini <<'EOF'
[data]
kind = digits
train_count = 400
test_count = 100
[model]
filters = 8, 16
strides = 2, 2
[train]
steps = 40
batch = 20
[quant]
enabled = yes
layout = int8
profile = tflite
activation_bits = 16
quant_delay = 20
bn_freeze_delay = 30
EOF
check "16-bit activations: training" "$tools/qat-train" wide.ini --out wide
check "16-bit activations: export" "$tools/qat-export" wide/last.ckpt wide.qm
has "16-bit activations: the engine's bytes are those of the exact evaluation" '^engine against exact evaluation: [0-9]+ bytes compared, 0 differing$' out.txt
check "16-bit activations: inspect" "$tools/qat-inspect" wide.qm
has "16-bit activations: the output has 16 bits" ' output int16 ' out.txt
has "16-bit activations: and 64-bit biases" ' const  int64 ' out.txt
check "16-bit activations: the checkpoint's accuracy" "$tools/qat-eval" wide/last.ckpt
grep '^quantized' out.txt >checkpoint.txt
check "16-bit activations: the model's accuracy" "$tools/qat-eval" wide.qm --recipe wide.ini
has "16-bit activations: they are equal" "^$(sed 's/  */ +/g; s/[()]/./g' checkpoint.txt)\$" out.txt
check "16-bit activations: debug" "$tools/qat-debug" wide/last.ckpt --samples 20
check "16-bit activations: sensitivity" "$tools/qat-debug" wide/last.ckpt --samples 20 --sensitivity wide.csv --bits 4
check "16-bit activations: report" "$tools/qat-report" wide -o wide.html
check "16-bit activations: bench" "$tools/qat-bench" wide.qm --runs 2
check "16-bit activations: .tflite" "$tools/qat-export" wide.qm wide.tflite
has "16-bit activations: .tflite rounds alike" '^0$' <(grep -c warning err.txt)
check "16-bit activations: and back" "$tools/qat-import" wide.tflite back.qm
check "16-bit activations: .tflite again" "$tools/qat-export" back.qm again.tflite
if "$tools/qat-export" wide/last.ckpt wide.onnx --opset 21 --samples 10 >out.txt 2>err.txt; then
    ok "16-bit activations: .onnx"
    # implicit <what> <kept profile> <settings...>: the profile of an .onnx file of a short run, if none is named
    implicit() {
        name=$1 kept=$2
        shift 2
        sed '/^layout\|^profile\|^activation_bits/d' wide.ini >few.ini
        check "few bits, $name: training" "$tools/qat-train" few.ini --out few "$@"
        check "few bits, $name: .onnx" "$tools/qat-export" few/last.ckpt few.onnx --samples 10
        if [ "$kept" = onnx ]; then
            has "few bits, $name: nothing is said" '^0$' <(grep -c 'fractional bits' out.txt err.txt | awk -F: '{n += $2} END {print n}')
        else
            has "few bits, $name: what --profile onnx would change" 'fractional bits.*--profile onnx' <(cat out.txt err.txt)
        fi
        check "few bits, $name: of profile $kept" "$tools/qat-export" few/last.ckpt named.onnx --samples 10 --profile "$kept"
        same "few bits, $name: profile $kept if none is named" few.onnx named.onnx
        rm -rf few
    }
    implicit "paper" paper --set quant.weight_bits=4
    implicit "one layer" paper --set "quant.layer conv1.activation_bits=4"
    implicit "8 bits with a fraction" paper --set quant.fraction=4
    implicit "tflite, which has no fraction" onnx --set quant.profile=tflite --set quant.weight_bits=4
    implicit "8 bits" onnx
elif grep -q 'without protobuf-c' err.txt; then
    ok "16-bit activations: a build without ONNX says so"
else
    not_ok "16-bit activations: .onnx: $(tail -n 1 err.txt)"
fi
check "16-bit activations: real numbers at the border" "$tools/qat-export" wide.qm real.tflite --float-io
for observer in minmax percentile mse; do
    check "16-bit activations: calibrated, $observer" "$tools/qat-export" wide/last.ckpt ptq.qm --ptq digits --ptq-samples 50 --observer $observer
done
refuses "16-bit activations: of layout uint8" 2 "quant.layout = uint8 cannot be combined with quant.activation_bits = 16" \
    "$tools/qat-train" wide.ini --set quant.layout=uint8
refuses "16-bit activations: of profile paper" 2 "quant.profile = paper cannot be combined" "$tools/qat-train" wide.ini --set quant.profile=paper
refuses "16-bit activations: exported with profile paper" 2 "16-bit activations need the profile tflite" \
    "$tools/qat-export" wide/last.ckpt n.qm --profile paper
refuses "16-bit activations: trained on integers" 2 "quant.forward = integer cannot be combined" "$tools/qat-train" wide.ini --set quant.forward=integer
refuses "16-bit activations: learned ranges" 2 "quant.ranges = lsq cannot be combined" "$tools/qat-train" wide.ini --set quant.ranges=lsq
refuses "16-bit activations: fractional accumulators" 2 "quant.fraction = 4 cannot be combined" "$tools/qat-train" wide.ini --set quant.fraction=4
refuses "12 bits" 2 "expected 2 to 8, or 16" "$tools/qat-train" wide.ini --set quant.activation_bits=12
refuses "8 bits in one layer alone" 2 "[quant.layer conv1] activation_bits = 8: a network has 16-bit activations in all layers or in none" \
    "$tools/qat-train" wide.ini --set "quant.layer conv1.activation_bits=8"
refuses "an op without 16-bit activations" 1 "op hard_swish takes no 16-bit activations" "$tools/qat-train" wide.ini --set model.activation=hard_swish
refuses "16-bit weights of a layer" 2 "expected an integer in 2..8" "$tools/qat-train" wide.ini --set "quant.layer conv1.weight_bits=16"
exit $failed
