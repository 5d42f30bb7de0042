#!/usr/bin/env bash
# The two failures of post-training quantization that Jacob et al. name (section 3): large differences between the
# ranges of output channels, and outlier weights. Both are made in a trained network by changes that do not change
# what it computes (see bench/speed/rescale.c). Then the network is quantized per tensor, per channel, with equalization,
# and by further training with simulated quantization per tensor. The command prints a table, and whether each result
# is as the paper says; the exit status is 1 if one is not. What is finished is not repeated.
# Usage: bench/ptq_failures.sh [OUT [digits|fashion_mnist [RATIO [FACTOR]]]]
set -euo pipefail
shopt -s inherit_errexit # an evaluation that fails ends the command, no cell is left out
cd "$(dirname "$0")/.."
data=${2:-digits}
out=${1:-runs/ptq_failures}/$data
recipe=recipes/separable.ini rescale=${QAT_BENCH:-build/bench}/rescale
. bench/runs.sh
case $data in
digits) from=(data.kind=digits) ratio=512 rate=0.02 ;;
fashion_mnist)
    from=(data.kind=idx "data.path=${QAT_DATA:-../shared/data}/fashion-mnist" data.train_count=0 data.test_count=0)
    ratio=64 rate=0.05
    ;;
*) stop "unknown data $data" ;;
esac
ratio=${3:-$ratio} factor=${4:-64}
claim "$out"

percent() { # percent <key> <qat-eval options...>: a share of its JSON
    "$tools/qat-eval" "${@:2}" --json >"$out/eval.json"
    number "$1" "$out/eval.json" | awk '{ printf "%.2f", 100 * $1 }'
}

# ---- one network, a channel of every layer dead
train "$out/float" $recipe - "${from[@]}" quant.enabled=no
[ -f "$out/off.ckpt" ] || "$rescale" "$out/float/last.ckpt" "$out/off.ckpt" off >"$out/off.log"
train "$out/trained" $recipe "$out/off.ckpt" "${from[@]}" quant.enabled=no train.epochs=2 train.lr=0.05

# ---- made to fail
cp "$out/trained/last.ckpt" "$out/none.ckpt"
"$rescale" "$out/none.ckpt" "$out/ranges.ckpt" ranges "$ratio"
"$rescale" "$out/none.ckpt" "$out/outlier.ckpt" outlier "$factor" >"$out/outlier.log"
for what in none ranges outlier; do
    fine_tune "$out/tuned-$what" $recipe "$out/$what.ckpt" 3 $rate "${from[@]}"
done

echo "$data: $recipe; ranges of a depthwise layer's channels spread by $ratio;"
echo "outliers of $factor times a convolution's or fully connected layer's largest weight"
echo
for what in none ranges outlier; do
    ckpt=$out/$what.ckpt
    row=$what
    row+=" $("$tools/qat-eval" "$ckpt" --ptq recipe --equalize | sed -n 's/.*differed by a factor of up to \([0-9.e+]*\),.*/\1/p')"
    row+=" $(percent float_top1 "$ckpt")"
    row+=" $(percent top1 "$ckpt" --ptq recipe)"
    row+=" $(percent top1 "$ckpt" --ptq recipe --observer mse --correct-bias)"
    row+=" $(percent top1 "$ckpt" --ptq recipe --equalize)"
    row+=" $(percent top1 "$ckpt" --ptq recipe --set quant.layout=int8)"
    row+=" $(percent top1 "$out/tuned-$what/last.ckpt")"
    echo "$row"
done >"$out/table.txt"
awk "$awk_functions"'
    BEGIN {
        print "| change | channels of a layer differ by up to | float | PTQ per tensor | PTQ per tensor, mse and bias correction " \
            "| PTQ per tensor, equalized | PTQ per channel | QAT per tensor |"
        print "|---|---|---|---|---|---|---|---|"
    }
    {
        printf "| %s | %s | %.2f %% | %.2f %% | %.2f %% | %.2f %% | %.2f %% | %.2f %% |\n", $1, $2, $3, $4, $5, $6, $7, $8
        if ($1 == "none") next
        if ($1 == "ranges") promise($2 > 100, "ranges: they differ by more than 100: " $2)
        promise($3 - $4 >= 10, sprintf("%s: PTQ per tensor fails, at least 10 points below float: %.2f", $1, $4 - $3))
        promise($3 - $7 <= 1.5, sprintf("%s: PTQ per channel, the control, within 1.5 points of float: %+.2f", $1, $7 - $3))
        promise($3 - $8 <= 1, sprintf("%s: QAT per tensor within 1 point of float: %+.2f", $1, $8 - $3))
    }
    END { printf "\n%s", verdict; exit broken > 0 }' "$out/table.txt"
