#!/usr/bin/env bash
# MLPerf Tiny's ResNet-8, a float .tflite file, on CIFAR-10's 10,000 test pictures: the float network as it is,
# quantized by calibration alone, and fine-tuned with quantization (recipes/resnet8.ini), with the float network as
# teacher. Bits of weights / bits of activations: 8/8, 4/8, 4/4; fine-tuned with 4/4, the picture, the answer and the
# weights of the first and the last layer have 8 bits. The integer engine runs each .qm over all test pictures. What is
# finished is not repeated, and an interrupted training continues. docs/from-other-tools.md says more.
# Usage: recipes/resnet8.sh [OUT] [--epochs N] [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out=runs/resnet8 epochs=4 recipe=recipes/resnet8.ini
settings=()
while [ $# -gt 0 ]; do
    case $1 in
    --epochs) epochs=${2:?} && shift ;;
    --set) settings+=("${2:?}") && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
claim "$out"

percent() { # percent <JSON file> <key>
    awk -v share="$(number_if_there "$2" "$1")" 'BEGIN { printf "%.2f %%", 100 * share }'
}

# The loss is the distance to the float network's answers alone. Few bits need larger steps.
teacher=("distill.teacher=$out/float/last.ckpt" distill.weight=1 distill.temperature=4)
few_bits=(train.optimizer=adam train.nesterov=no train.weight_decay=0 train.lr=0.0002)
ends=('quant.layer @first.weight_bits=8' 'quant.layer @last.weight_bits=8')
for tensor in input @last Identity; do ends+=("quant.layer $tensor.activation_bits=8"); done

train "$out/float" "$recipe" - train.epochs=0 quant.enabled=no
evaluate "$out/float/eval.json" "$out/float/last.ckpt"
echo "| weights / activations | calibrated | fine-tuned, $epochs epochs |"
echo '|---|---|---|'
echo "| float | $(percent "$out/float/eval.json" float_top1) | |"
for bits in 8/8 4/8 4/4; do
    dir=$out/w${bits%/*}a${bits#*/} observer=mse how=("${teacher[@]}" "${few_bits[@]}")
    widths=("quant.weight_bits=${bits%/*}" "quant.activation_bits=${bits#*/}")
    case $bits in
    8/8) observer=percentile how=("${teacher[@]}") ;;
    4/4) how+=(quant.ranges=lsq "${ends[@]}") ;;
    esac
    deploy "$dir/ptq" "$recipe" "$out/float/last.ckpt" --ptq recipe --observer $observer \
        --set quant.layout=int8 --set "${widths[0]}" --set "${widths[1]}"
    train "$dir/qat" "$recipe" - "train.epochs=$epochs" "${widths[@]}" "${how[@]}" "${settings[@]}"
    deploy "$dir/qat" "$recipe" "$dir/qat/last.ckpt"
    echo "| $bits | $(percent "$dir/ptq/qm.json" top1) | $(percent "$dir/qat/qm.json" top1) |"
done
