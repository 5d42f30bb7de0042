#!/usr/bin/env bash
# The accuracy of a network on integers by four commands, side by side, as counts of right answers
# (top-1/top-5): what qat-train prints last, qat-eval of the checkpoint, qat-eval of the .qm, and the
# answers of qat-run counted over the test pictures, where these are files.
#
#     bench/same_accuracy.sh [FOLDER]       default: runs/same_accuracy; replaces what is in it
#
# The networks are the quickstart, Fashion-MNIST in one epoch, and MobileNet v1 0.25 with 4-bit weights
# and activations on the picture files of cifar10-folder; it begins with weights of two float epochs on
# CIFAR-10. The exit status is 1 if two counts of one network differ. QAT_TOOLS names another folder of
# commands.
set -u
cd "$(dirname "$0")/.." || exit 1
tools=${QAT_TOOLS:-build/tools}
out=${1:-runs/same_accuracy}
data=${QAT_DATA:-../shared/data}
. tests/e2e/four_figures.sh
failed=0

row() { # row <name> <options of four_figures...>
    local name=$1
    shift
    four_figures "$@" || { echo "$name: failed"; failed=1; return; }
    local verdict=same
    all_same || { verdict=DIFFERENT; failed=1; }
    printf '%-34s %8s %13s %13s %13s %13s  %s\n' "$name" "$samples" "$trained" "$exact" "$engine" \
        "$counted" "$verdict"
}

printf '%-34s %8s %13s %13s %13s %13s\n' network samples qat-train "qat-eval CKPT" "qat-eval .qm" qat-run
row quickstart recipes/quickstart.ini "$out/quickstart" recipes/quickstart.ini ""
row "Fashion-MNIST, 1 epoch" recipes/fashion_mnist.ini "$out/fashion" recipes/fashion_mnist.ini "" \
    --set train.epochs=1 --set quant.quant_delay=50%
mobilenet=(--set model.multiplier=0.25 --set model.bn_momentum=0.9 --set train.eval_every=never)
rm -rf "$out/float"
"$tools/qat-train" recipes/cifar10_mobilenet.ini --out "$out/float" "${mobilenet[@]}" \
    --set train.epochs=2 --set quant.enabled=no >/dev/null || exit 1
row "MobileNet v1 0.25, 4/4 bits" recipes/cifar10_mobilenet.ini "$out/mobilenet" \
    "folder:$data/cifar10-folder" "$data/cifar10-folder/val" "${mobilenet[@]}" --init "$out/float/last.ckpt" \
    --set data.kind=folder --set "data.path=$data/cifar10-folder" --set data.height=32 \
    --set train.epochs=20 --set train.batch=20 --set train.optimizer=adam --set train.lr=0.001 \
    --set quant.weight_bits=4 --set quant.activation_bits=4
exit $failed
