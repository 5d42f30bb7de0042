#!/usr/bin/env bash
# A stranger's checkpoint or recipe runs no code. The plugin here leaves a file when it is loaded. Only
# training with its recipe, and --plugin, may do that; every other command must name it and stop.
set -u
source=${QAT_SOURCE_ROOT:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "$source/tests/common/checks.sh"

# ---------------------------------------------------------------- a plugin that leaves a trace
cat >bait.c <<C
#include "$source/examples/swish.c"
#include <stdio.h>
__attribute__((constructor)) static void leave_a_trace(void)
{
    FILE *file = fopen("$work/trace", "a");
    if (file)
        fclose(file);
}
C
build() { # build <name> <options...>: a plugin
    "${CC:-cc}" -std=c11 -shared -fPIC -I "$source/include" bait.c -o "$@" -lm
}
check "the plugin" build libswish.so
digest=$(sha256sum libswish.so | cut -d ' ' -f 1)

quiet() { # quiet <what> <exit status> <text> <command...>: it refuses, and loads nothing
    rm -f trace
    refuses "$@"
    if [ -e trace ]; then not_ok "$1: the plugin ran"; fi
}

loads() { # loads <what> <command...>: it succeeds, and loads the plugin
    rm -f trace
    check "$@"
    if [ -e trace ]; then ok "$1: the plugin is loaded"; else not_ok "$1: the plugin is not loaded"; fi
}

recipe() { # recipe <plugin.path>: a network with its layer
    cat <<INI
[data]
kind = digits
train_count = 32
test_count = 16
[model]
arch = layers
[layer.pool]
op = average_pool2d
kernel = 7
stride = 7
[layer.act]
op = swish
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
steps = 2
batch = 8
[quant]
enabled = yes
quant_delay = 0
[plugin]
path = $1
INI
}
recipe ./libswish.so >mine.ini

# ---------------------------------------------------------------- the recipe
loads "training with a recipe that names it" "$tools/qat-train" mine.ini --out run
wanted="mine.ini: plugin.path names libswish.so"
quiet "--dry-run" 1 "$wanted" "$tools/qat-train" mine.ini --dry-run
quiet "--ops" 1 "$wanted" "$tools/qat-train" mine.ini --ops
quiet "qat-inspect of the recipe" 1 "$wanted" "$tools/qat-inspect" mine.ini --graph
loads "--dry-run --plugin" "$tools/qat-train" mine.ini --dry-run --plugin libswish.so
loads "--ops --plugin" "$tools/qat-train" --ops --plugin libswish.so
has "its op" '^swish: ' out.txt
loads "qat-inspect of the recipe, --plugin" "$tools/qat-inspect" mine.ini --graph --plugin libswish.so

# ---------------------------------------------------------------- the checkpoint
for file in run/last.ckpt "$source/tests/e2e/data/version3.ckpt"; do
    case $file in
    run/*)
        name="checkpoint"
        wanted="run/last.ckpt needs the plugin libswish.so (SHA-256 $digest)"
        ;;
    *)
        name="checkpoint of version 3"
        wanted="needs the plugin libswish.so (trained with ./libswish.so)"
        ;;
    esac
    quiet "$name: qat-inspect" 1 "$wanted" "$tools/qat-inspect" "$file"
    quiet "$name: qat-inspect --graph" 1 "$wanted" "$tools/qat-inspect" "$file" --graph
    quiet "$name: qat-eval" 1 "$wanted" "$tools/qat-eval" "$file"
    quiet "$name: qat-eval --recipe" 1 "$wanted" "$tools/qat-eval" "$file" --recipe mine.ini
    quiet "$name: qat-export" 1 "$wanted" "$tools/qat-export" "$file" no.qm
    quiet "$name: qat-bench" 1 "$wanted" "$tools/qat-bench" "$file" --runs 1
    has "says how" "give it with --plugin libswish.so" err.txt
    sed 's/^path = .*/path =/; s/^op = swish/op = relu/; $a [distill]\nteacher = '"$file" mine.ini >student.ini
    quiet "$name: as a teacher" 1 "$wanted" "$tools/qat-train" student.ini --out student --overwrite
    rm -f trace
    check "$name: as a teacher, --dry-run" "$tools/qat-train" student.ini --dry-run
    if [ -e trace ]; then not_ok "$name: --dry-run ran the plugin"; fi
    loads "$name: as a teacher, --plugin" "$tools/qat-train" student.ini --out student --overwrite --plugin ./libswish.so
    loads "$name: as a teacher, plugin.path" "$tools/qat-train" student.ini --out student --overwrite \
        --set plugin.path=./libswish.so
    loads "$name: qat-inspect --plugin" "$tools/qat-inspect" "$file" --plugin ./libswish.so
    loads "$name: qat-eval --plugin" "$tools/qat-eval" "$file" --plugin ./libswish.so
    loads "$name: qat-export --plugin" "$tools/qat-export" "$file" model.qm --plugin ./libswish.so --samples 4
    loads "$name: qat-bench --plugin" "$tools/qat-bench" "$file" --runs 1 --plugin ./libswish.so
    quiet "$name: another plugin" 1 "$wanted" "$tools/qat-eval" "$file" --plugin "$QAT_BUILD_ROOT/examples/libthree_sigma.so"
    rm -f trace
    check "$name: its weights, which need no code" "$tools/qat-train" mine.ini --set plugin.path= \
        --set layer.act.op=relu --init "$file" --set train.steps=1 --out tuned --overwrite
    if [ -e trace ]; then not_ok "$name: train.init ran the plugin"; fi
done

# ---------------------------------------------------------------- names and digests
mkdir elsewhere
cp libswish.so elsewhere/renamed.so
loads "the same file under another name" "$tools/qat-eval" run/last.ckpt --plugin elsewhere/renamed.so
if [ -s err.txt ]; then not_ok "says nothing"; fi
check "the plugin, built again" build elsewhere/libswish.so -O1 -DANEW
loads "is accepted" "$tools/qat-eval" run/last.ckpt --plugin elsewhere/libswish.so
has "with a warning" "warning: run/last.ckpt was trained with another libswish.so \(SHA-256 $digest" err.txt
loads "a run goes on with it" "$tools/qat-train" mine.ini --resume --out run --set plugin.path=elsewhere/libswish.so
has "with a warning" 'another libswish.so' out.txt
recipe elsewhere/libswish.so >moved.ini
check "the same run from another folder" "$tools/qat-train" moved.ini --plugin libswish.so --out moved
check "and with its own path" "$tools/qat-train" mine.ini --out again
same "the same checkpoint" moved/last.ckpt again/last.ckpt
if grep -qa elsewhere moved/last.ckpt; then not_ok "the checkpoint names a folder"; fi

check "a run with two plugins" "$tools/qat-train" mine.ini \
    --plugin libswish.so --plugin "$QAT_BUILD_ROOT/examples/libthree_sigma.so" --out two
quiet "both are missing" 1 "(SHA-256 $digest) and 1 more. A checkpoint loads no code" "$tools/qat-inspect" two/last.ckpt
refuses "the second is missing" 1 "needs the plugin libthree_sigma.so (SHA-256 " \
    "$tools/qat-inspect" two/last.ckpt --plugin libswish.so
check "both are given" "$tools/qat-inspect" two/last.ckpt \
    --plugin "$QAT_BUILD_ROOT/examples/libthree_sigma.so" --plugin libswish.so
has "qat-inspect shows them" "^plugin libswish.so, SHA-256 $digest\$" out.txt

# ---------------------------------------------------------------- other paths in a checkpoint
# Its recipe names a teacher and initial weights. To open them now would wait for ever.
sed '/^op = swish/s/swish/relu/; /^\[plugin\]/,$d' mine.ini >plain.ini
check "a teacher" "$tools/qat-train" plain.ini --out teacher
check "its student" "$tools/qat-train" plain.ini --set distill.teacher=teacher/last.ckpt \
    --set train.init=teacher/last.ckpt --out pupil
rm teacher/*.ckpt
mkfifo teacher/last.ckpt
check "qat-inspect opens neither" timeout 20 "$tools/qat-inspect" pupil/last.ckpt
check "qat-inspect --tensor" timeout 20 "$tools/qat-inspect" pupil/last.ckpt --tensor 0
check "qat-eval" timeout 20 "$tools/qat-eval" pupil/last.ckpt
check "qat-export" timeout 20 "$tools/qat-export" pupil/last.ckpt pupil.qm --samples 4
check "qat-bench" timeout 20 "$tools/qat-bench" pupil/last.ckpt --runs 1
check "train.init from it" timeout 20 "$tools/qat-train" plain.ini --init pupil/last.ckpt --out tuned --overwrite

for i in 1 2 3 4; do
    { printf 'P5 8 8 255\n' && head -c 64 /dev/zero | tr '\0' "\\$((i * 50))"; } >"$i.pgm"
    echo "$i.pgm $((i % 2))"
done >list.txt
sed 's/^kind = digits/kind = list\npath = list.txt\nchannels = 1\nheight = 8\nsplit = 0.5/; /_count/d; s/= 7$/= 2/; s/^batch = 8/batch = 2/; s/^units = 10/units = 2/' plain.ini >list.ini
check "training with a list" "$tools/qat-train" list.ini --out listed
mv list.txt kept.txt
mkfifo list.txt
check "its data: qat-inspect does not open them" timeout 20 "$tools/qat-inspect" listed/last.ckpt
check "nor qat-bench" timeout 20 "$tools/qat-bench" listed/last.ckpt --runs 1
check "qat-eval --data opens others" timeout 20 "$tools/qat-eval" listed/last.ckpt --data list:kept.txt

# A folder of sounds from somebody else: its lists may name what lies outside, which is not read then.
if ldd "$tools/qat-run" | grep -q libsndfile; then
    wav() { # wav <value>: 620 samples of 8 bits
        printf 'RIFF\220\002\000\000WAVEfmt \020\000\000\000\001\000\001\000\200>\000\000\200>\000\000\001\000\010\000data\154\002\000\000'
        head -c 620 /dev/zero | tr '\0' "$1"
    }
    mkdir -p sounds/no sounds/yes outside
    for i in 1 2 3 4; do
        wav "\\$((i * 50))" >sounds/no/$i.wav
        wav "\\$((i * 50 + 7))" >sounds/yes/$i.wav
    done
    mkfifo outside/1.wav
    printf 'no/1.wav\nyes/1.wav\n../outside/1.wav\n/etc/passwd\n' >sounds/testing_list.txt
    sed 's/^kind = digits/kind = wav\npath = sounds\nseconds = 0.1/; /_count/d; s/= 7$/= 2/; s/^batch = 8/batch = 2/; s/^units = 10/units = 2/' plain.ini >sounds.ini
    check "a list of sounds that names others" timeout 20 "$tools/qat-train" sounds.ini --out heard
    has "of which none is read" "^data: wav sounds: 6 training sounds, 2 test sounds, 2 classes" out.txt
    mkfifo sounds/no/9.wav
    refuses "a pipe among them" 1 "sounds/no/9.wav: not a file" timeout 20 "$tools/qat-train" sounds.ini --out piped
else
    echo "SKIP folders of sounds: a build without libsndfile"
fi

# ---------------------------------------------------------------- a .qm and a sweep
rm -f trace
check "qat-eval of a .qm with that recipe" "$tools/qat-eval" model.qm --recipe mine.ini
if [ -e trace ]; then not_ok "qat-eval --recipe ran the plugin"; fi
check "a sweep gives the recipe's plugin to its commands" "$tools/qat-sweep" mine.ini --out sweep --verify 4
exit $failed
