#!/usr/bin/env bash
# Tests claims of the paper and of the reference documents in small trained networks (recipes/claims): roundings,
# 8-bit biases, clamps, an exact zero, the lowest code, delayed quantization. Prints lines "claim: WHAT: found|not
# found: FIGURES"; docs/claims.md explains them. What is finished is not trained again. With --net it tests a
# checkpoint of yours instead. If Fashion-MNIST is not there, drawn digits are used.
# Usage: bench/claims.sh [OUT] [--seeds N] [--set SECTION.KEY=VALUE]... | bench/claims.sh --net CKPT [--samples N]
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
claims=${QAT_CLAIMS:-$(dirname "$tools")/bench/claims}
out=runs/claims seeds=3 net='' samples=()
settings=()
while [ $# -gt 0 ]; do
    case $1 in
    --seeds) seeds=${2:?} && shift ;;
    --net) net=${2:?} && shift ;;
    --samples) samples=(--samples "${2:?}") && shift ;;
    --set) settings+=("${2:?}") && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
[ -x "$claims" ] || stop "$claims is not built"
if [ -n "$net" ]; then exec "$claims" net "$net" "${samples[@]}"; fi

recipe() { # recipe <name>: its file, or one with data that are drawn
    if [ -d "${QAT_DATA:-../shared/data}/fashion-mnist" ]; then
        echo "recipes/claims/$1.ini"
    else
        sed 's/^kind = .*/kind = digits\ntest_count = 2000/; /^path = /d; s/Fashion-MNIST/drawn digits/' "recipes/claims/$1.ini" >"$out/$1.ini"
        echo "$out/$1.ini"
    fi
}

ask() { # ask <recipe> [<options>]: about its network, once
    local dir=$out/$1
    local answer=$dir/claims${*:2}.txt
    train "$dir" "$(recipe "$1")" - "${settings[@]}"
    if [ ! -f "$answer" ]; then
        "$claims" net "$dir/last.ckpt" "${samples[@]}" "${@:2}" >"$dir/claims.part"
        mv "$dir/claims.part" "$answer"
    fi
    echo "## $*"
    cat "$answer"
}

delayed() { # delayed <delay> <seed>
    local dir=$out/delay-$1-$2
    train "$dir" "$(recipe delay)" - "quant.quant_delay=$1" "train.seed=$2" "${settings[@]}"
    deploy "$dir" "$(recipe delay)" "$dir/last.ckpt" --samples 500
}

compare_delays() { # paired over seeds: Student's t
    local seed
    for seed in $(seq "$seeds"); do
        delayed 0 "$seed"
        delayed 50% "$seed"
        echo "$(number top1 "$out/delay-0-$seed/qm.json") $(number top1 "$out/delay-50%-$seed/qm.json")"
    done >"$out/delays.txt"
    awk "$awk_functions"'
        { now += 100 * $1; late += 100 * $2; d = 100 * ($2 - $1); sum += d; squares += d * d; n++ }
        END {
            split("0 12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", critical, " ")
            s = deviation(n, sum, squares)
            t = s > 0 ? sum / n / (s / sqrt(n)) : 0
            found = n > 1 && t > (n > 10 ? 2.23 : critical[n])
            printf("claim: delayed quantization is better than none: %s: %.2f %% instead of %.2f %%, %s points, t = %.2f of %d seeds\n",
                found ? "found" : "not found", late / n, now / n, spread(n, sum, squares, "%+.2f"), t, n)
        }' "$out/delays.txt"
}

claim "$out"
echo "## rounding"
"$claims" rounding
ask arithmetic
ask few_bits
for bits in 8 4 3; do ask lowest_code --weight-bits $bits | grep -e '^##' -e 'lowest code'; done
echo "## delay"
compare_delays
