#!/usr/bin/env bash
# What one evaluation during training costs: of the float network, of the quantized one on integers, and
# of its float32 simulation.
#
#     bench/evaluation_time.sh [RECIPE.ini...]      default: quickstart and Fashion-MNIST
#
# Each recipe trains a few quantized steps several times over: without evaluations; with evaluations after
# each step; with the simulation too. The differences are the evaluations, in seconds of processor time: all
# threads together, so that other programs disturb it little.
# QAT_TOOLS names another folder of commands.
set -eu
export LC_ALL=C # times have a decimal point
cd "$(dirname "$0")/.."
tools=${QAT_TOOLS:-build/tools}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=4
[ $# -gt 0 ] || set -- recipes/quickstart.ini recipes/fashion_mnist.ini

seconds() { # seconds <recipe> <options...>: processor time of the run
    TIMEFORMAT='%U %S'
    { time "$tools/qat-train" "$1" --out "$work/run" --overwrite --set train.steps=$steps \
        --set train.checkpoint_every=never "${@:2}" --set output.best=no >"$work/said" 2>&1; } 2>"$work/time" || {
        tail -n 3 "$work/said" >&2
        return 1
    }
    awk '{ print $1 + $2 }' "$work/time"
}

printf '%-28s %9s %11s %11s  %s\n' recipe "float" "on integers" simulated "simulated / on integers"
for recipe; do
    none=$(seconds "$recipe" --set train.eval_every=never --set quant.enabled=no)
    float=$(seconds "$recipe" --set train.eval_every=1 --set quant.enabled=no)
    once=$(seconds "$recipe" --set train.eval_every=never --set quant.quant_delay=0)
    integers=$(seconds "$recipe" --set train.eval_every=1 --set quant.quant_delay=0)
    all=$(seconds "$recipe" --set train.eval_every=1 --set quant.quant_delay=0 --set train.eval_simulated=yes)
    awk -v r="$(basename "$recipe" .ini)" -v n=$((steps - 1)) -v f="$float" -v f0="$none" -v i="$integers" \
        -v i0="$once" -v a="$all" 'BEGIN {
            float = (f - f0) / n; integer = (i - i0) / n - float; simulated = (a - i) / (n + 1)
            printf "%-28s %7.3f s %9.3f s %9.3f s  %.2f\n", r, float, integer, simulated, simulated / integer
        }'
done
