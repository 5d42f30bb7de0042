#!/usr/bin/env bash
# Fashion-MNIST with one recipe: float, layout uint8 and layout int8, with several seeds each. The command trains and
# exports, and the integer engine runs each .qm over all 10,000 test pictures. (A finished run is not repeated, an
# interrupted one continues.) It prints what qat-export said about each model, a table, and the mean over seeds of
# (integer - float) with its standard error. It says what is expected of accuracy, size and time, and whether it is
# kept; the exit status is 1 if it is not.
# Usage: bench/fashion_mnist.sh [OUT [SEED...]]
set -eu
cd "$(dirname "$0")/.."
out=${1:-runs/fashion_mnist}
shift || true
[ $# -gt 0 ] || set -- 1 2 3
recipe=recipes/fashion_mnist.ini
. bench/runs.sh
claim "$out"

ratio() { # ratio <folder...>: the largest of .qm bytes / bytes of the float weights
    for folder in "$@"; do
        sed -n 's/.*: \([0-9]*\) bytes; float parameters \([0-9]*\) bytes;.*/\1 \2/p' "$folder/export.log"
    done | awk '{ r = $1 / $2; if (r > largest) largest = r } END { printf "%.4f", NR ? largest : 1 }'
}

for seed in "$@"; do
    train "$out/float-$seed" "$recipe" - "train.seed=$seed" quant.enabled=no
    for layout in uint8 int8; do
        dir=$out/$layout-$seed
        train "$dir" "$recipe" - "train.seed=$seed" quant.enabled=yes "quant.layout=$layout"
        deploy "$dir" "$recipe" "$dir/last.ckpt"
    done
    dir=$out/float-$seed
    evaluate "$dir/float.json" "$dir/last.ckpt"
done

for seed in "$@"; do
    for layout in uint8 int8; do
        echo "qat-export, $layout, seed $seed:"
        sed 's/^/    /' "$out/$layout-$seed/export.log"
    done
done

for seed in "$@"; do
    echo "$seed $(number float_top1 "$out/float-$seed/float.json") $(number top1 "$out/uint8-$seed/qm.json") \
$(number top1 "$out/int8-$seed/qm.json") $(cat "$out"/{float,uint8,int8}-"$seed"/seconds | sort -n | tail -n 1) \
$(ratio "$out"/{uint8,int8}-"$seed")"
done | awk "$awk_functions"'
    BEGIN {
        lowest = 100
        print "| seed | float top-1 | .qm uint8 | .qm int8 | longest training, s |\n|---|---|---|---|---|"
    }
    {
        printf "| %s | %.2f %% | %.2f %% | %.2f %% | %d |\n", $1, 100 * $2, 100 * $3, 100 * $4, $5
        n++
        f += $2
        for (k = 3; k <= 4; k++) { d = 100 * ($k - $2); sum[k] += d; squares[k] += d * d }
        if (100 * $2 < lowest) lowest = 100 * $2
        if ($5 > longest) longest = $5
        if ($6 > largest) largest = $6
    }
    function line(k, name) {
        mean = sum[k] / n
        error = deviation(n, sum[k], squares[k]) / sqrt(n)
        printf "%s - float: mean %+.3f points, standard error %.3f, %d seeds\n", name, mean, error, n
    }
    function close_to_float(k, name) { # rounded far below a test picture, 0.01 points
        d = sprintf("%.6f", sum[k] / n) + 0
        promise(d >= -0.3 && d <= 0.3, sprintf("%s within 0.3 points of float: %+.3f", name, d))
    }
    END {
        printf "float: mean %.2f %%\n", 100 * f / n
        line(3, "uint8")
        line(4, "int8")
        promise(lowest >= 91.5 - 1e-6, sprintf("float at least 91.5 %%: lowest %.2f %%", lowest))
        close_to_float(3, "uint8")
        close_to_float(4, "int8")
        promise(longest <= 900, sprintf("each training at most 15 minutes: longest %d s", longest))
        promise(largest <= 0.27, sprintf(".qm at most 0.27 of the float weights: largest %.3f", largest))
        printf "%s", verdict
        exit broken > 0
    }'
