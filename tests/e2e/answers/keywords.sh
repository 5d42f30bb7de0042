#!/usr/bin/env bash
# A keyword spotter from WAV files to answers: the features of a C program of integers are training's, byte for byte;
# the folders give the network of the drawn words; the answers of qat-run and of that program are those of qat-eval;
# a network with a state hears a file frame by frame. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
hear=$QAT_BUILD_ROOT/examples/hear
write_sounds=$(realpath "$1") # meson names it from its own folder
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
training=160 test=40

check "sounds" "$write_sounds" words $training $test

# ---------------------------------------------------------------- the device's features
differing=0 bytes=0
for raw in words/raw/*.raw; do
    "$hear" --codes "$raw" >codes || not_ok "$raw"
    differing=$((differing + $(cmp -l codes "${raw%.raw}.codes" | wc -l)))
    bytes=$((bytes + $(wc -c <"${raw%.raw}.codes")))
    [ "$(wc -c <codes)" = "$(wc -c <"${raw%.raw}.codes")" ] || not_ok "$raw: $(wc -c <codes) codes"
done
if [ "$differing" = 0 ] && [ "$bytes" = $((test * 49 * 32)) ]; then
    ok "fixed-point features, a C program of integers against training: $test sounds, $bytes bytes, 0 differing"
else
    not_ok "features: $differing of $bytes bytes differ"
fi
printf '\001' | dd of=words/raw/00000.codes conv=notrunc 2>/dev/null
"$hear" --codes words/raw/00000.raw | cmp -s - words/raw/00000.codes && not_ok "a differing byte goes unnoticed"

# ---------------------------------------------------------------- a network of folders
network() { # network <data>
    cat <<INI
[data]
$1
mean = 110
std = 40
[model]
arch = layers
[layer.conv]
op = conv2d
filters = 8
kernel = 5
stride = 4
batch_norm = yes
activation = relu
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
epochs = 6
batch = 20
lr = 0.02
[quant]
enabled = yes
quant_delay = 50%
ema_decay = 0.9
INI
}
network "kind = keywords
train_count = $training
test_count = $test" >drawn.ini
check "the drawn words" "$tools/qat-train" drawn.ini --out drawn
check "their model" "$tools/qat-export" drawn/last.ckpt drawn.qm
has "verified" "engine against exact evaluation: [0-9]* bytes compared, 0 differing" out.txt
check "what it takes" "$tools/qat-inspect" drawn.qm
has "a sound" '^input: a sound of 16 kHz, 49 frames of 32 bands, .code - mean. / std with mean 110, std 40$' out.txt
check "features augmented" "$tools/qat-train" drawn.ini --out augmented --set train.steps=4 --set data.time_shift=100 \
    --set data.gain=0.3 --set data.background=0.2
printf '\037' >x.npy
refuses "a picture for it" 1 "not a WAV file" "$tools/qat-run" drawn.qm x.npy
if ! ldd "$tools/qat-run" | grep -q libsndfile; then
    echo "SKIP WAV files: a build without libsndfile (Debian: libsndfile1-dev)"
    refuses "a WAV file" 1 "this build of qat cannot read WAV files" "$tools/qat-run" drawn.qm words/val/kito/*0.wav
    exit $failed
fi

network "kind = wav
path = words" >mine.ini
check "folders of WAV files" "$tools/qat-train" mine.ini --out mine
has "what was found" "^data: wav words: $training training sounds, $test test sounds, 10 classes .*, of 49 frames .0.992 s.: shorter ones end" out.txt
check "their model" "$tools/qat-export" mine/last.ckpt mine.qm
has "verified" "engine against exact evaluation: [0-9]* bytes compared, 0 differing" out.txt

check "the model on the folders" "$tools/qat-eval" mine.qm --data wav:words --json
accuracy=$(grep -oE '"top1": [0-9.]+' out.txt | head -n 1 | grep -oE '[0-9.]+$')

# ---------------------------------------------------------------- answers
right=0 agreeing=0 n=0
for wav in words/val/*/*.wav; do
    word=$(basename "$(dirname "$wav")")
    number=$(basename "$wav" .wav)
    said=$("$tools/qat-run" mine.qm "$wav" | awk '{ print $3 }')
    [ "$said" = "$word" ] && right=$((right + 1))
    [ "$("$hear" mine.qm "words/raw/$number.raw")" = "$said" ] && agreeing=$((agreeing + 1))
    n=$((n + 1))
done
if [ $agreeing = $n ] && [ $n = $test ]; then
    ok "a C program without floating point answers as qat-run on $n sounds"
else
    not_ok "the C program agrees on $agreeing of $n sounds"
fi
if [ $right -gt 0 ] && awk "BEGIN { d = $right / $n - ${accuracy:-9}; exit !(d < 1e-6 && d > -1e-6) }"; then
    ok "qat-run answers $right of $n rightly, as qat-eval says ($accuracy)"
else
    not_ok "qat-run answers $right of $n rightly, qat-eval says $accuracy"
fi
check "a folder of sounds" "$tools/qat-run" mine.qm words/val/kito
[ "$(wc -l <out.txt)" = $((test / 10)) ] || not_ok "answers for a folder: $(cat out.txt)"
wav=$(echo words/val/kito/*.wav | awk '{ print $1 }')
head -c 9000 "$wav" >short.wav
refuses "a file that was cut" 1 "the file ends before its sound does" "$tools/qat-run" mine.qm short.wav
refuses "--steps without a state" 2 "--steps works with --input, or with a sound and a model with states" \
    "$tools/qat-run" --steps mine.qm short.wav

# ---------------------------------------------------------------- frame by frame
cat >listens.ini <<INI
[data]
kind = wav
path = words
train_count = 40
mean = 110
std = 40
[model]
arch = layers
steps = 49
[layer.gru]
op = gru
units = 8
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
steps = 4
batch = 10
[quant]
enabled = yes
layout = int8
quant_delay = 0
INI
check "a network with a state" "$tools/qat-train" listens.ini --out listens
check "its model" "$tools/qat-export" listens/last.ckpt listens.qm
has "frame by frame as whole" "frame by frame against whole sequences of 49 steps: $test samples, [0-9]* bytes compared, 0 differing" out.txt
check "each frame's answer" "$tools/qat-run" --steps listens.qm "$wav"
[ "$(wc -l <out.txt)" = 49 ] || not_ok "answers: $(wc -l <out.txt) lines"
has "with its time" " at 0.992 s" out.txt
awk '{ print $6 }' out.txt >steps.txt
"$hear" listens.qm "words/raw/$(basename "$wav" .wav).raw" >heard.txt
said=$("$tools/qat-run" listens.qm "$wav" | awk '{ print $3 }')
if cmp -s heard.txt steps.txt && [ "$(tail -n 1 heard.txt)" = "$said" ]; then
    ok "the 49 answers of the C program are those of qat-run --steps, the last one that of qat-run: $said"
else
    not_ok "the C program says $(tail -n 1 heard.txt) after $(wc -l <heard.txt) frames, qat-run $said"
fi
check "each frame's codes" "$tools/qat-run" --steps listens.qm "$wav" --output steps.npy
check "the last frame's codes" "$tools/qat-run" listens.qm "$wav" --output last.npy
if [ "$(tail -c 10 steps.npy | od -An -tx1)" = "$(tail -c 10 last.npy | od -An -tx1)" ]; then
    ok "the bytes after the last frame are those of the whole"
else
    not_ok "the bytes after the last frame differ from those of the whole"
fi
check "evaluated" "$tools/qat-eval" listens.qm --data wav:words
exit $failed
