#!/usr/bin/env bash
# Fashion-MNIST, one recipe: float, layout uint8, layout int8, several seeds each. Trains (a finished run
# is not repeated, an interrupted one goes on), exports, runs each .qm by the integer engine over all
# 10,000 test pictures, and prints a table, the mean over seeds of (integer - float) with its standard
# error, and the largest training time. Usage: bench/fashion_mnist.sh [OUT [SEED...]]
set -eu
cd "$(dirname "$0")/.."
out=${1:-runs/fashion_mnist}
shift || true
[ $# -gt 0 ] || set -- 1 2 3
tools=${QAT_TOOLS:-build/tools}

number() { # number <key> <file>: a number from a JSON object
    grep -o "\"$1\": *[-0-9.e+]*" "$2" | head -n 1 | sed 's/.*: *//'
}

train() { # train <folder> <settings...>
    dir=$1
    shift
    [ -f "$dir/seconds" ] && return 0
    mkdir -p "$dir"
    begin=$(date +%s)
    resume=
    [ -f "$dir/last.ckpt" ] && resume=--resume
    "$tools/qat-train" recipes/fashion_mnist.ini "$@" --out "$dir" $resume >>"$dir/train.log" 2>&1
    echo $(($(date +%s) - begin)) >"$dir/seconds"
}

for seed in "$@"; do
    train "$out/float-$seed" --set "train.seed=$seed" --set quant.enabled=no
    for layout in uint8 int8; do
        train "$out/$layout-$seed" --set "train.seed=$seed" --set quant.enabled=yes --set "quant.layout=$layout"
        dir=$out/$layout-$seed
        [ -f "$dir/qm.json" ] && continue
        "$tools/qat-export" "$dir/last.ckpt" "$dir/model.qm" >"$dir/export.log" 2>&1
        "$tools/qat-eval" "$dir/model.qm" --recipe recipes/fashion_mnist.ini --json >"$dir/qm.json.part"
        mv "$dir/qm.json.part" "$dir/qm.json"
    done
    dir=$out/float-$seed
    [ -f "$dir/float.json" ] || "$tools/qat-eval" "$dir/last.ckpt" --json >"$dir/float.json"
done

for seed in "$@"; do
    echo "$seed $(number float_top1 "$out/float-$seed/float.json") $(number top1 "$out/uint8-$seed/qm.json") \
$(number top1 "$out/int8-$seed/qm.json") $(cat "$out"/{float,uint8,int8}-"$seed"/seconds | sort -n | tail -n 1)"
done | awk '
    BEGIN { print "| seed | float top-1 | .qm uint8 | .qm int8 | longest training, s |\n|---|---|---|---|---|" }
    {
        printf "| %s | %.2f %% | %.2f %% | %.2f %% | %d |\n", $1, 100 * $2, 100 * $3, 100 * $4, $5
        n++
        f += $2
        for (k = 3; k <= 4; k++) { d = 100 * ($k - $2); sum[k] += d; squares[k] += d * d }
    }
    function line(k, name) {
        mean = sum[k] / n
        error = n > 1 ? sqrt((squares[k] - n * mean * mean) / (n - 1) / n) : 0
        printf "%s - float: mean %+.3f points, standard error %.3f, %d seeds\n", name, mean, error, n
    }
    END { printf "float: mean %.2f %%\n", 100 * f / n; line(3, "uint8"); line(4, "int8") }'
