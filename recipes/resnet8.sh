#!/usr/bin/env bash
# MLPerf Tiny's ResNet-8, a float .tflite file, on CIFAR-10's 10,000 test pictures: the float network as it is,
# quantized by calibration alone, and fine-tuned with quantization (recipes/resnet8.ini). Bits of weights / bits of
# activations: 8/8, 4/8, 4/4. The integer engine runs each .qm over all test pictures. What is finished is not repeated,
# and an interrupted training continues. docs/from-other-tools.md says more.
# Usage: recipes/resnet8.sh [OUT] [--epochs N] [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out=runs/resnet8 epochs=20 recipe=recipes/resnet8.ini
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

train "$out/float" "$recipe" - train.epochs=0 quant.enabled=no
evaluate "$out/float/eval.json" "$out/float/last.ckpt"
echo "| weights / activations | calibrated | fine-tuned, $epochs epochs |"
echo '|---|---|---|'
echo "| float | $(percent "$out/float/eval.json" float_top1) | |"
for bits in 8/8 4/8 4/4; do
    dir=$out/w${bits%/*}a${bits#*/}
    widths=("quant.weight_bits=${bits%/*}" "quant.activation_bits=${bits#*/}")
    deploy "$dir/ptq" "$recipe" "$out/float/last.ckpt" --ptq recipe --observer "$([ $bits = 8/8 ] && echo percentile || echo mse)" \
        --set quant.layout=int8 --set "${widths[0]}" --set "${widths[1]}"
    train "$dir/qat" "$recipe" - "train.epochs=$epochs" "${widths[@]}" "${settings[@]}"
    deploy "$dir/qat" "$recipe" "$dir/qat/last.ckpt"
    echo "| $bits | $(percent "$dir/ptq/qm.json" top1) | $(percent "$dir/qat/qm.json" top1) |"
done
