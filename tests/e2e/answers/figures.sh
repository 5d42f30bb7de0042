#!/usr/bin/env bash
# qat-eval --figures and --predictions on short runs: the files, that they agree with the accuracy and with each other,
# what is refused. tests/foreign/figures/figures.sh compares the figures themselves. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6\nstrides = 2, 2
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "its model" "$tools/qat-export" run/last.ckpt small.qm
check "its figures" "$tools/qat-eval" run/last.ckpt --figures of_ckpt --predictions ckpt.csv
if [ "$(find of_ckpt -name '*.png' | wc -l)" = 8 ] && [ "$(find of_ckpt -name '*.svg' | wc -l)" = 8 ]; then
    ok "four pictures of each network, as PNG and SVG"
elif grep -q 'without cairo' err.txt; then
    echo "SKIP pictures: built without cairo"
else not_ok "pictures: $(ls of_ckpt)"; fi
has "a line of means" '^mean of 10: precision [0-9.]+ %  recall ' out.txt
has "a line of calibration" '^calibration error [0-9.]+ %$' out.txt
share=$(sed -nE 's/^quantized +top-1 ([0-9.]+) %.*/\1/p' out.txt)
has "all kinds of them" '"float_figures": \{"task": "classes", "kind": "one_of", "n": 60' of_ckpt/figures.json
has "the confusion as text" '^rows: what is true; columns: what the network answers$' of_ckpt/figures.txt
lines=$(wc -l <ckpt.csv)
if [ "$lines" = 121 ]; then ok "an answer for each sample and network"; else not_ok "$lines lines of answers"; fi
counted=$(awk -F, '$1 == "quantized" { n++; right += $3 == $5 } END { printf "%.2f", 100 * right / n }' ckpt.csv)
if [ "$counted" = "$share" ]; then ok "$share % of them are right, as it prints"; else not_ok "$counted of $share"; fi

check "the model's figures" "$tools/qat-eval" small.qm --recipe small.ini --figures of_qm --predictions qm.csv
grep -v '^float' ckpt.csv >quantized.csv
same "the engine's answers are those of the exact evaluation" quantized.csv qm.csv
for kind in confusion roc; do
    [ -f of_qm/$kind.png ] && same "$kind.png is the same" of_ckpt/$kind.png of_qm/$kind.png
done

of_recipe() { # of_recipe <recipe> <kind> <sed>: its figures after a short run
    sed -E "s/^train_count.*/train_count = 400/; s/^test_count.*/test_count = 60/; s/^epochs.*/epochs = 1/; s/^dir.*/dir = $1/" \
        "$QAT_SOURCE_ROOT/recipes/$1.ini" >"$1.ini"
    check "$1: a run" "$tools/qat-train" "$1.ini" --set train.steps=8
    check "$1: figures" "$tools/qat-eval" "$1/last.ckpt" --figures "$1/figures" --predictions "$1/answers.csv"
    has "$1: their kind" "\"kind\": \"$2\", \"n\": 60" "$1/figures/figures.json"
    has "$1: answers" '^float,0,' "$1/answers.csv"
}
of_recipe anomaly ranked
of_recipe multi_label each
of_recipe regression values
of_recipe faces each

printf '[data]\nkind = scenes\nheight = 64\ntrain_count = 8\ntest_count = 4\n[model]\narch = mobilenet_ssd
multiplier = 0.05\n[train]\nsteps = 1\nbatch = 4\n' >boxes.ini
check "a detector" "$tools/qat-train" boxes.ini --out boxes
refuses "a detector's figures" 1 "figures: the answers of a detector" "$tools/qat-eval" boxes/last.ckpt --figures none
: >file
refuses "a file in the folder's place" 1 "file" "$tools/qat-eval" small.qm --recipe small.ini --figures file
refuses "no folder for the answers" 1 "none/a.csv" "$tools/qat-eval" small.qm --recipe small.ini --predictions none/a.csv
exit $failed
