#!/usr/bin/env bash
# Segmentation by the commands: the recipe, shortened, is trained, exported, evaluated as checkpoint and as .qm alone,
# and the mask of a picture is written. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

sed -E 's/^train_count.*/train_count = 200/; s/^test_count.*/test_count = 40/; s/^epochs.*/epochs = 3/; s/^height.*/height = 32/; s/^dir.*/dir = run/' \
    "$QAT_SOURCE_ROOT/recipes/segmentation.ini" >scenes.ini
check "training" "$tools/qat-train" scenes.ini
has "its figures" '; 20 validation samples; mIoU: float [0-9.]+ %, on integers [0-9.]+ %; pixel accuracy: float [0-9.]+ %, on integers [0-9.]+ %$' out.txt
has "log.csv's columns" ',float_miou,' run/log.csv
check "export" "$tools/qat-export" run/last.ckpt a.qm --summary
has "every byte of the eval graph is the engine's" 'bytes compared, 0 differing' out.txt
has "it is certified" '^certified against the checkpoint: ' out.txt
check "inspect the .qm" "$tools/qat-inspect" a.qm
has "its epilogue" 'segmentation of t[0-9]+: one of 11 classes for each of 32 x 32 pixels$' out.txt
judged_alike run/last.ckpt a.qm scenes.ini

printf 'P6\n40 30\n255\n' >black.ppm
head -c 3600 /dev/zero >>black.ppm
check "the answer to a picture" "$tools/qat-run" a.qm black.ppm --draw masks
has "counts pixels" '^black.ppm: [0-9]+ [a-z ]+ [(][0-9]+ pixels[)]' out.txt
if [ "$(head -c 24 masks/black.png | tail -c 8 | od -An -tx1 | tr -d ' ')" = 000000280000001e ]; then
    ok "its mask has the picture's size"; else not_ok "masks/black.png"; fi
check "as JSON" "$tools/qat-run" a.qm black.ppm --json
has "is a list of counts" '^\{"input": "black.ppm", "pixels": \[\{"class": [0-9]+, "label": "[a-z ]+", "count": [0-9]+\}' out.txt

# the mask that was written is one that can be learned from
mkdir -p own/images own/masks
for i in 1 2 3 4; do cp black.ppm own/images/$i.ppm && cp masks/black.png own/masks/$i.png; done
check "own masks" "$tools/qat-train" scenes.ini --dry-run --set data.kind=masks --set data.path=own --set data.split=0.5 --set data.classes=11 --set data.validation=0 --set train.batch=2
has "are read" '2 training pictures, 2 test pictures, 4096 pixels of 11 classes' out.txt
refuses "--top of a mask" 2 "a segmentation answers a class for each pixel" "$tools/qat-run" a.qm black.ppm --top 3
refuses "boxes" 1 "samples without classes of their pixels" "$tools/qat-eval" a.qm --data shapes --samples 1
exit $failed
