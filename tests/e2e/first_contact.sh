#!/usr/bin/env bash
# First contact with one's own pictures: what the commands say about them before the first step, what they refuse, and
# that all commands use the same split of data.split. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

# ---------------------------------------------------------------- pictures: one grey a class
picture() { # picture <file> <grey, three octal digits>
    mkdir -p "$(dirname "$1")"
    { printf 'P5 4 4 255\n' && printf "\\$2%.0s" 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; } >"$1"
}
for i in 01 02 03 04 05 06 07 08 09 10 11 12; do
    picture "pets/cat/$i.pgm" "0$i"
    picture "pets/dog/$i.pgm" "2${i/[89]/7}"
    picture "pets/owl/$i.pgm" "3${i/[89]/7}"
done
cat >pets.ini <<'INI'
[data]
kind = folder
path = pets
height = 8
split = 0.75
[model]
filters = 4, 8
strides = 2
[train]
epochs = 2
batch = 9
INI
train() { "$tools/qat-train" pets.ini "$@"; }
says() { # says <what> <text> <command...>: it succeeds, and says so
    local what=$1 text=$2
    shift 2
    if "$@" >out.txt 2>&1 && grep -qF -- "$text" out.txt; then ok "$what"; else
        not_ok "$what: $(head -c 600 out.txt)"
    fi
}

# ---------------------------------------------------------------- what is there
found="data: folder pets: 27 training pictures, 9 test pictures, 3 classes (cat 12, dog 12, owl 12)"
says "pictures and classes are counted" "$found" train --out a
says "all pictures are decoded" "data: all 36 pictures can be read" train --out a --overwrite
says "a dry run counts them, too" "$found" train --dry-run
touch pets/cat/x.webp pets/cat/y.webp pets/readme.txt
mkdir pets/dog/puppies
says "what is ignored is counted" \
    "ignored: 3 files (.webp 2, .txt 1), 1 subfolder of a class folder" train --out a --overwrite
rm -r pets/cat/?.webp pets/readme.txt pets/dog/puppies

# ---------------------------------------------------------------- the same split for every command
check "a quantized run" train --out q --set quant.enabled=yes --set quant.quant_delay=50%
says "qat-eval has the same 9 pictures" "(9 samples)" "$tools/qat-eval" q/last.ckpt
"$tools/qat-eval" q/last.ckpt >eval.txt
printed=$(sed -n 's/.*test, top-1: float \([0-9.]* %\).*/\1/p' <(train --out q2) | tail -1)
evaluated=$("$tools/qat-eval" q2/last.ckpt | sed -n 's/.*top-1 \([0-9.]* %\).*/\1/p' | head -1)
if [ -n "$printed" ] && [ "$printed" = "$evaluated" ]; then ok "and the same answers"; else
    not_ok "qat-train printed '$printed', qat-eval '$evaluated'"
fi
says "qat-export verifies with them" "" "$tools/qat-export" q/last.ckpt q.qm
for t in "qat-eval q/last.ckpt" "qat-export q/last.ckpt few.qm" "qat-inspect q/last.ckpt --tensor 0" \
    "qat-eval q/last.ckpt --recipe pets.ini" "qat-eval q.qm --recipe pets.ini"; do
    # shellcheck disable=SC2086
    refuses "pictures beyond the limit: $t" 1 "4 x 4 pixels, more than the 15 allowed" "$tools/"$t --max-pixels 15
    # shellcheck disable=SC2086
    check "pictures at the limit: $t" "$tools/"$t --max-pixels 16
done

# ---------------------------------------------------------------- what is refused
refuses "no split" 1 "data.split = 0.8" train --out b --set data.split=0
refuses "a range" 2 "data.split = 1.5" train --out b --set data.split=1.5
mkdir -p flat/train && cp -r pets/cat flat/train/
refuses "one class" 1 "are of one class (cat), a classifier needs two" \
    train --out b --set data.path=flat
mkdir flat/train/dog && touch flat/train/dog/a.webp
refuses "a class without pictures" 1 "no pictures (.png" train --out b --set data.path=flat
refuses "and what it has instead" 1 "but 1 file (.webp 1)" train --out b --set data.path=flat
cp -r pets val && mkdir both && cp -r pets both/train && mv val both/
refuses "a split where there is one" 2 "both/val is there already" \
    train --out b --set data.path=both
rm -r both/train/owl
refuses "a class that is not trained" 1 "class folder owl does not exist in train" \
    train --out b --set data.path=both --set data.split=0

# ---------------------------------------------------------------- a broken picture
printf 'P5 4 4 255\nabc' >pets/dog/03.pgm
printf '\377\330\377\340 no jpeg' >pets/cat/99.jpg
refuses "broken pictures are found before the first step" 1 "pets/cat/99.jpg: " train --out c
if [ ! -e c/log.csv ]; then ok "nothing is written before"; else not_ok "c/log.csv is there"; fi
says "they are left out if wanted" "skipped: 2 pictures that cannot be read" \
    train --out c --set data.skip_broken=yes
says "by every command" "float" "$tools/qat-eval" c/last.ckpt
says "in each run" "nothing left to do" train --out c --set data.skip_broken=yes --resume
says "ends alone find them, too" "skipped: 2" train --out c --overwrite \
    --set data.skip_broken=yes --set data.check=ends
refuses "ends alone find the cut ones" 1 "cannot be read" train --out d --set data.check=ends
rm pets/cat/99.jpg
picture pets/dog/03.pgm 203

# ---------------------------------------------------------------- runs that learn nothing
says "one answer for everything" "network answers class cat for all 9 test samples" \
    train --out n --set train.lr=0 --set model.batch_norm=no --set data.mean=1e9
says "quantization that begins too early" "quant.quant_delay = 50% lets them settle first" \
    train --out m --set quant.enabled=yes
if grep -q "settle first" <(train --out m2 --set quant.enabled=yes --set quant.quant_delay=50% 2>&1); then
    not_ok "the advice is followed, and repeated"
else ok "the advice is followed"; fi

# ---------------------------------------------------------------- resuming
check "a run to go on with" train --out e
says "the same data" "nothing left to do" train --out e --resume
mkdir moved && cp -r pets moved/
says "elsewhere" "nothing left to do" train --out e --resume --set data.path=moved/pets
picture pets/owl/new.pgm 300
refuses "a new picture" 2 "37 samples now, 36 then; owl/new.pgm is new" train --out e --resume
rm pets/owl/new.pgm pets/owl/01.pgm
refuses "a picture that is gone" 2 "35 samples now, 36 then; nothing is new" train --out e --resume
mkdir other && cp -r pets other/val
says "other data may be evaluated" "(35 samples)" "$tools/qat-eval" e/last.ckpt --data folder:other
exit $failed
