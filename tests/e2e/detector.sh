#!/usr/bin/env bash
# A detector by the commands: it is trained, exported, evaluated as checkpoint and as .qm, and run on a picture on
# which the boxes are drawn. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

cat >scenes.ini <<'END'
[data]
kind = scenes
height = 64
train_count = 24
test_count = 12
one_class = yes
[model]
arch = mobilenet_ssd
multiplier = 0.05
[train]
steps = 4
batch = 8
eval_batch = 6
optimizer = adam
lr = 0.003
[quant]
enabled = yes
quant_delay = 1
[detect]
score_threshold = 0.001
END
check "training" "$tools/qat-train" scenes.ini --out run
has "a row's figure" '  test, AP50: float [0-9.]+ %' out.txt
has "its figure" 'AP50: float [0-9.]+ %, on integers [0-9.]+ %; AP@' out.txt
has "log.csv's columns" '^step,.*,float_ap50,integer_ap50,simulated_ap50,' run/log.csv
check "export" "$tools/qat-export" run/last.ckpt a.qm --samples 4 --summary
has "its summary" '^AP50 ' out.txt
check "inspect it" "$tools/qat-inspect" a.qm
has "its epilogue" '^epilogue, computed outside the engine: detection_postprocess of t[0-9]+,t[0-9]+,t[0-9]+: boxes of 1 class$' out.txt

judged_alike run/last.ckpt a.qm scenes.ini
check "as JSON" "$tools/qat-eval" a.qm --recipe scenes.ini --json
has "its keys" '"ap50": [-0-9.e]+, "ap50_interval": \[[-0-9.e]+, [-0-9.e]+\], "ap": [-0-9.e]+, "precision": [0-9.e]+, "recall"' out.txt
refuses "a detector on classes" 1 "no boxes, but the network finds some" "$tools/qat-eval" run/last.ckpt --data shapes \
    --samples 1

# ---------------------------------------------------------------- a picture
{
    printf 'P6\n80 60\n255\n'
    head -c $((80 * 60 * 3)) /dev/zero
} >black.ppm
check "a picture with its boxes drawn" "$tools/qat-run" a.qm black.ppm --draw drawn --dump-tensors dumped
check "the PNG" test -s drawn/black.png
for array in boxes classes scores count; do check "$array.npy" test -s dumped/$array.npy; done
boxes() { grep -c '^  [01][.]' out.txt; }
check "all boxes" "$tools/qat-run" a.qm black.ppm
all=$(boxes) least=$(sed -n 's/^  \([01][.][0-9]*\) .*/\1/p' out.txt | sort -u | sed -n 2p)
check "those from a score on" "$tools/qat-run" a.qm black.ppm --threshold "$least"
if [ "$(boxes)" -gt 0 ] && [ "$(boxes)" -lt "$all" ]; then ok "$(boxes) of $all have $least"; else not_ok "$(boxes) of $all have $least"; fi
check "those of score 1" "$tools/qat-run" a.qm black.ppm --threshold 1 --json --draw none
has "are none" '"found": \[\]' out.txt
refuses "a score beyond 1" 2 "--threshold 1.5: expected a score from 0 to 1" "$tools/qat-run" a.qm black.ppm --threshold 1.5
mkdir -p pictures
cp drawn/black.png black.ppm pictures/
cp drawn/black.png before.png
refuses "two pictures as one file" 2 "drawn/black.png: two pictures would be drawn there" "$tools/qat-run" a.qm pictures --draw drawn
refuses "a picture over itself" 2 "pictures/black.png would be overwritten" "$tools/qat-run" a.qm pictures/black.png --draw pictures
same "which is still there" pictures/black.png before.png
refuses "--draw without a picture" 2 "--draw works with pictures" "$tools/qat-run" a.qm --input x.npy --draw drawn
printf '[data]\nkind = digits\ntrain_count = 32\ntest_count = 10\n[model]\nfilters = 4\nstrides = 2
[train]\nsteps = 1\nbatch = 16\n[quant]\nenabled = yes\n' >small.ini
check "a classifier" "$tools/qat-train" small.ini --out classifier
check "its export" "$tools/qat-export" classifier/last.ckpt c.qm --samples 2
refuses "--threshold of a classifier" 2 "--threshold is for detectors" "$tools/qat-run" c.qm black.ppm --threshold 0.5
refuses "--draw of a classifier" 2 "--draw is for detectors" "$tools/qat-run" c.qm black.ppm --draw drawn

exit $failed
