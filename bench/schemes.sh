#!/usr/bin/env bash
# Schemes of quantization in one table, as in Jacob et al., table 4.2: binary, ternary and incremental weights with
# float activations, fine-grained ternary weights with 8 bits, and 8 / 8. Then follow those schemes that the integer
# engine can run. The training of each scheme begins with the same float network. The table has top-1 over all test
# data, and what qat-export said. What is finished is not repeated, and what was interrupted continues.
# docs/experiments.md says more.
# Usage: bench/schemes.sh [OUT] [--table] [--recipe FILE] [--float CKPT] [--seeds N] [--tune-epochs N] [--tune-lr X]
#                         [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out='' only_table=no recipe=recipes/cifar10_resnet20.ini float='' seeds=1 tune_epochs=2 tune_lr=0.02
settings=()
while [ $# -gt 0 ]; do
    case $1 in
    --table) only_table=yes ;;
    --recipe) recipe=${2:?} && shift ;;
    --float) float=${2:?} && shift ;;
    --seeds) seeds=${2:?} && shift ;;
    --tune-epochs) tune_epochs=${2:?} && shift ;;
    --tune-lr) tune_lr=${2:?} && shift ;;
    --set) settings+=("${2:?}") && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
[ -f "$recipe" ] || stop "$recipe: no such recipe"
[ -z "$float" ] || [ -f "$float" ] || stop "$float: no such checkpoint"
[ -z "$float" ] || [ "$seeds" = 1 ] || stop "--float is one network: --seeds 1"
out=${out:-runs/schemes/$(basename "$recipe" .ini)}

# Quantizer of the weights, their bits, bits of activations (32: float), seed; a line each, in the order in which they
# are done.
cells() {
    local seed
    for seed in $(seq "$seeds"); do
        printf '%s\n' "ema 8 8 $seed" "bwn 1 32 $seed" "twn 2 32 $seed" "inq 5 32 $seed" "fgq 2 8 $seed" \
            "bwn 1 8 $seed" "twn 2 8 $seed" "inq 4 8 $seed"
    done
}

folder() { # folder <cell...>
    echo "$out/$1-w$2a$3-$4"
}

float_of() { # float_of <seed>: the network to begin with
    if [ -n "$float" ]; then echo "$float"; else echo "$out/float-$1/last.ckpt"; fi
}

train_float() { # train_float <seed>
    local dir=$out/float-$1
    if [ -z "$float" ]; then
        train "$dir" "$recipe" - "train.seed=$1" quant.enabled=no "${settings[@]}"
    fi
    mkdir -p "$dir"
    evaluate "$dir/float.json" "$(float_of "$1")"
}

# Layers at the ends keep 8 bits, but those of inq, which quantizes all.
scheme_settings() { # scheme_settings <cell...>
    local end
    printf '%s\n' quant.layout=int8 quant.forward=fake_quant "quant.weight_ranges=$1"
    [ "$3" = 8 ] || printf '%s\n' quant.activation_ranges=none
    case $1 in
    inq) printf '%s\n' "quant.weight_bits=$2" quant.bn_freeze_delay=0 ;;
    bwn | twn | fgq) for end in first last; do echo "quant.layer @$end.weight_ranges=ema"; done ;;
    esac
}

# Float activations, and fgq's scales within a sum: refused, and with which words.
refuse() { # refuse <folder>
    [ -f "$1/refused.txt" ] && return 0
    if "$tools/qat-export" "$1/last.ckpt" "$1/model.qm" >"$1/export.log" 2>&1; then
        stop "$1: qat-export should have refused it"
    fi
    mv "$1/export.log" "$1/refused.txt"
}

run() { # run <cell...>
    local dir
    local scheme=()
    dir=$(folder "$@")
    train_float "$4"
    mapfile -t scheme < <(scheme_settings "$@")
    fine_tune "$dir" "$recipe" "$(float_of "$4")" "$tune_epochs" "$tune_lr" "train.seed=$4" "${scheme[@]}" "${settings[@]}"
    if [ "$3" = 32 ] || [ "$1" = fgq ]; then
        refuse "$dir"
        evaluate "$dir/ckpt.json" "$dir/last.ckpt"
    else
        deploy "$dir" "$recipe" "$dir/last.ckpt" --samples 1000
    fi
}

verdict() { # verdict <folder>: of qat-export
    if [ -f "$1/refused.txt" ]; then
        sed 's/^qat-export: //; s/ cannot become integers:.*//; s/^layers of //; s/,*$//; s/^/refused: /' "$1/refused.txt"
    elif [ -f "$1/export.log" ]; then
        sed -n 's/^engine against exact evaluation: \([0-9]*\) bytes compared, \([0-9]*\) differing/runs: \2 of \1 bytes differ/p' \
            "$1/export.log"
    fi
}

table() {
    local cell dir
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        dir=$(folder $cell)
        echo "$cell $(number_if_there float_top1 "$out/float-${cell##* }/float.json") $(number_if_there top1 "$dir/qm.json") \
$(number_if_there simulated_top1 "$dir/ckpt.json") $(verdict "$dir")"
    done | awk "$awk_functions"'
        BEGIN {
            names["ema"] = "8 bits, min and max"; names["bwn"] = "BWN, binary"; names["twn"] = "TWN, ternary"
            names["inq"] = "INQ, powers of two"; names["fgq"] = "FGQ, ternary by fours"
        }
        $5 != "-" && !($4 in float) { float[$4]; m++; fsum += 100 * $5; fsquares += 10000 * $5 * $5 }
        {
            row = $1 " " $2 " " $3
            if (!(row in said)) { rows[++count] = row; said[row] = "" }
            top1 = $6 != "-" ? $6 : $7
            if (top1 == "-") next
            n[row]++; sum[row] += 100 * top1; squares[row] += 10000 * top1 * top1
            change[row] += 100 * (top1 - $5)
            if (said[row] == "") { $1 = $2 = $3 = $4 = $5 = $6 = $7 = ""; sub(/^ */, ""); said[row] = $0 }
        }
        END {
            print "float top-1: " (m ? spread(m, fsum, fsquares, "%.2f") " %" : "missing") "\n"
            print "| weights | bits, weights / activations | top-1 | minus float, points | qat-export |"
            print "|---|---|---|---|---|"
            for (i = 1; i <= count; i++) {
                row = rows[i]; split(row, c, " ")
                printf "| %s | %s / %s | %s | %s | %s |\n", names[c[1]], c[2], c[3] == 32 ? "float" : c[3],
                    n[row] ? spread(n[row], sum[row], squares[row], "%.2f") " %" : "missing",
                    n[row] ? sprintf("%+.2f", change[row] / n[row]) : "", said[row]
            }
        }'
}

if [ $only_table = no ]; then
    claim "$out"
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        run $cell </dev/null
        table >"$out/table.md"
    done
fi
mkdir -p "$out"
table | tee "$out/table.md"
