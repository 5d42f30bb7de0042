#!/usr/bin/env bash
# same_bytes.sh OLD NEW [PATTERN]: does a change of the code change any byte of any result? OLD and NEW are build
# folders of the commit before and of the change. Every recipe (or those that match PATTERN) is trained with both for a
# few steps: as it is, with other schemes, and with the forward on integers. Then it is exported, evaluated, inspected
# and run on each instruction set. Checkpoints, logs, .qm, tensors and printed text are compared byte for byte; only
# times and sizes of memory are left out. It takes some minutes. Recipes whose data are not there are skipped and named.
set -u
[ $# -ge 2 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
old=$(cd "$1" && pwd) || exit 2
new=$(cd "$2" && pwd) || exit 2
pattern=${3:-*}
cd "$(dirname "$0")/.." || exit 2
source=$PWD
export QAT_DATA=${QAT_DATA:-$source/../shared/data}
QAT_DATA=$(cd "$QAT_DATA" 2>/dev/null && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
compared=0
differing=0
skipped=0

few="--set train.steps=6 --set train.batch=8 --set train.schedule=constant --set train.warmup=0
    --set train.eval_every=3 --set train.log_every=1 --set train.checkpoint_every=3 --set train.eval_batch=8 --threads 2"
quantized="--set quant.enabled=yes --set quant.quant_delay=2 --set quant.bn_freeze_delay=4"

isas=$("$new/tools/qat-eval" "$source/README.md" --isa none 2>&1 | sed -n 's/.*this processor runs: //p' | tr -d ,)
[ -n "$isas" ] || { echo "not ok - $new/tools/qat-eval tells no instruction sets"; exit 2; }

# Everything that one build makes of one recipe with these settings, in the folder that it is called in.
results() { # results <build> <recipe> <settings...>
    tools=$1/tools recipe=$2
    shift 2
    said() { # said <name> <command...>: its text, without what differs from run to run
        name=$1
        shift
        "$@" >"$name.txt" 2>&1
        echo "exit status $?" >>"$name.txt"
        sed -i -E "s#$tools##g; s/[0-9.]+ (ms|s|min|images\/s|samples\/s)\b/T/g; s/^(time|peak memory|memory).*//" "$name.txt"
    }
    # shellcheck disable=SC2086
    said train "$tools/qat-train" "$recipe" --out run $few "$@"
    [ -f run/last.ckpt ] || return
    rm -f run/times.csv
    said dry "$tools/qat-train" "$recipe" --dry-run $few "$@"
    said export "$tools/qat-export" run/last.ckpt model.qm --samples 16 --threads 2
    grep -q 'kind = coco' "$recipe" || said ptq "$tools/qat-export" run/last.ckpt ptq.qm --ptq recipe --ptq-samples 16 --samples 4 --equalize --correct-bias
    said eval "$tools/qat-eval" run/last.ckpt --samples 16
    said checkpoint "$tools/qat-inspect" run/last.ckpt
    said graph "$tools/qat-inspect" run/last.ckpt --graph
    [ -f model.qm ] || return
    said model "$tools/qat-inspect" model.qm
    said model_graph "$tools/qat-inspect" model.qm --graph
    said inputs "$tools/qat-eval" model.qm --recipe "$recipe" --samples 2 --dump-inputs inputs
    first=$(find inputs -name '*.npy' 2>/dev/null | sort | head -n 1)
    for isa in $isas; do
        said "eval_$isa" "$tools/qat-eval" model.qm --recipe "$recipe" --samples 16 --isa $isa
        [ -z "$first" ] || said "run_$isa" "$tools/qat-run" model.qm --input "$first" --isa $isa --dump-tensors "tensors_$isa"
    done
}

compare() { # compare <name> <recipe> <settings...>
    name=$1
    shift
    # shellcheck disable=SC2254
    case $name in $pattern) ;; *) return ;; esac
    mkdir -p "$work/old" "$work/new"
    (cd "$work/old" && results "$old" "$@") &
    (cd "$work/new" && results "$new" "$@")
    wait
    if [ ! -f "$work/old/run/last.ckpt" ]; then
        echo "SKIP $name: $(tail -n 2 "$work/old/train.txt" | head -n 1)"
        skipped=$((skipped + 1))
    elif diff -r "$work/old" "$work/new" >"$work/diff.txt"; then
        echo "ok - $name: $(find "$work/new" -type f | wc -l) files"
        compared=$((compared + 1))
    else
        echo "not ok - $name"
        sed "s#$work/##g" "$work/diff.txt" | cut -c 1-200 | head -n 12
        differing=$((differing + 1))
    fi
    rm -rf "$work/old" "$work/new"
}

printf '[data]\nkind = shapes\ntrain_count = 64\ntest_count = 32\n' >"$work/layers.ini"
cat tests/e2e/data/every_layer.ini >>"$work/layers.ini"

compare layers "$work/layers.ini" $quantized
for change in forward=integer layout=int8 profile=tflite bn_fold=one_pass weight_bits=4 activation_bits=6 \
    weight_ranges=tqt,activation_ranges=tqt weight_ranges=lsq,activation_ranges=lsq power_of_two=yes \
    layout=int8,profile=tflite,forward=integer bn_fold=one_pass,forward=integer weight_ranges=bwn,activation_ranges=none \
    weight_ranges=inq,bn_freeze_delay=2,weight_bits=4 activation_ranges=none; do
    settings=
    for one in ${change//,/ }; do settings="$settings --set quant.$one"; done
    # shellcheck disable=SC2086
    compare "layers-$change" "$work/layers.ini" $quantized $settings
done
for recipe in "$source"/recipes/*.ini; do
    base=$(basename "$recipe" .ini)
    sed -E '/^(train|test)_count/d; s/^kind = (digits|shapes|scenes|faces)\b.*/&\ntrain_count = 64\ntest_count = 32/' "$recipe" >"$work/$base.ini"
    compare "$base-float" "$work/$base.ini" --set quant.enabled=no
    # shellcheck disable=SC2086
    compare "$base" "$work/$base.ini" $quantized
    # shellcheck disable=SC2086
    compare "$base-tflite-integer" "$work/$base.ini" $quantized --set quant.layout=int8 --set quant.profile=tflite \
        --set quant.forward=integer
done
for recipe in "$source"/recipes/paper/*.ini; do
    case $(basename "$recipe") in $pattern) ;; *) continue ;; esac
    for build in "$old" "$new"; do
        "$build/tools/qat-train" "$recipe" --dry-run --set quant.enabled=yes >"$work/dry-${build//\//_}.txt" 2>&1 ||
            echo "failed in $build" >>"$work/dry-${build//\//_}.txt"
    done
    if cmp -s "$work"/dry-*.txt; then echo "ok - $(basename "$recipe"): dry run"; compared=$((compared + 1)); else
        echo "not ok - $(basename "$recipe"): dry run"; differing=$((differing + 1))
    fi
    rm -f "$work"/dry-*.txt
done
echo "$compared same, $differing differing, $skipped skipped"
[ $differing = 0 ] && [ $compared -gt 0 ]
