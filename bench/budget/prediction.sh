#!/usr/bin/env bash
# How well do the losses that a budget search predicts agree with those of the simulated network? For the choices of a
# curve over sizes of flash, of both kinds of sensitivity, it prints both losses, the rank correlation (Spearman's) of
# all choices, the mean of |log(predicted / simulated)| of those that lose at least 0.001, and the mean of the simulated
# losses: the less, the better are the choices. Nothing is trained.
# Usage: bench/budget/prediction.sh RECIPE CHECKPOINT [OUT] [SECTION.KEY=VALUE...]
set -eu
cd "$(dirname "$0")/../.."
. bench/runs.sh
[ $# -ge 2 ] || stop "give a recipe and a checkpoint of its float run"
recipe=$1 checkpoint=$2 out=${3:-runs/prediction}
shift $(($# < 3 ? 2 : 3))
options=()
for setting in "$@"; do options+=(--set "$setting"); done
claim "$out"
for kind in measured hessian; do
    mkdir -p "$out/$kind"
    [ -f "$out/$kind/curve.csv" ] || logged "$out/$kind/log" "$tools/qat-train" --budget --dry-run "$recipe" --init "$checkpoint" \
        --out "$out/$kind" --set "budget.sensitivity=$kind" --set budget.flash=1024M --set "budget.table=$out/sensitivity.csv" "${options[@]}"
done
for kind in measured hessian; do
    sed "1d; s/^/$kind,/" "$out/$kind/curve.csv"
done | awk -F, '
    function rank(values, n, i,    k, r) { # of value i; equal ones share theirs
        r = 0.5
        for (k = 1; k <= n; k++) r += values[k] < values[i] ? 1 : values[k] == values[i] ? 0.5 : 0
        return r
    }
    function tell(kind, n,    i, a, b, ma, mb, ab, aa, bb, logs, m, d, sum) {
        ma = mb = (n + 1) / 2
        for (i = 1; i <= n; i++) {
            a = rank(predicted, n, i) - ma
            b = rank(simulated, n, i) - mb
            ab += a * b; aa += a * a; bb += b * b; sum += simulated[i]
            if (predicted[i] >= 0.001 && simulated[i] >= 0.001) {
                d = log(predicted[i] / simulated[i])
                logs += d < 0 ? -d : d
                m++
            }
        }
        summary = summary sprintf("| %s | %d | %s | %s | %.3f |\n", kind, n, aa * bb > 0 ? sprintf("%.3f", ab / sqrt(aa * bb)) : "-", m ? sprintf("%.2f", logs / m) : "-", sum / n)
    }
    $1 != kind { if (n) tell(kind, n); kind = $1; n = 0 }
    {
        n++; predicted[n] = $4; simulated[n] = $5
        printf "%s: flash %d, predicted %.5f, simulated %.5f\n", $1, $2, $4, $5
    }
    END {
        tell(kind, n)
        printf "\n| sensitivity | choices | rank correlation | mean of \\|log(predicted / simulated)\\| | mean simulated loss |\n|---|---|---|---|---|\n%s", summary
    }'
