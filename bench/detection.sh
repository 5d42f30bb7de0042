#!/usr/bin/env bash
# Two detectors, recipes/detect_cards.ini and detect_bccd.ini. For each seed there is a float training, and one that
# quantizes at its end. The integer engine runs its .qm over all validation pictures. The command prints a table with
# average precision at IoU 0.5 and the float network's bootstrap interval. It says what is expected of accuracy and
# time, and whether it is kept. OUT/table.md and OUT/table.json hold the same. What is finished is not repeated, and
# an interrupted training continues. The exit status is 1 if an expectation is broken. docs/experiments.md says more.
# Usage: bench/detection.sh [OUT] [--table] [--seeds N] [--only cards|bccd] [--recipes DIR]
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
sets='cards bccd'
out=runs/detection only_table=no seeds=3 trained=$sets recipes=recipes
while [ $# -gt 0 ]; do
    case $1 in
    --table) only_table=yes ;;
    --seeds) seeds=${2:?} && shift ;;
    --only) trained=${2:?} && shift ;;
    --recipes) recipes=${2:?} && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
for set in $trained; do [ -f "$recipes/detect_$set.ini" ] || stop "no recipe $recipes/detect_$set.ini"; done

run() { # run <set> <seed>
    local recipe=$recipes/detect_$1.ini float=$out/$1/float-$2 quantized=$out/$1/quantized-$2
    train "$float" "$recipe" - "train.seed=$2" quant.enabled=no
    evaluate "$float/float.json" "$float/last.ckpt"
    train "$quantized" "$recipe" - "train.seed=$2" quant.enabled=yes
    deploy "$quantized" "$recipe" "$quantized/last.ckpt"
}

interval() { # interval <key> <file>: its two ends
    sed -n "s/.*\"$1\": \[\([-0-9.e]*\), \([-0-9.e]*\)\].*/\1 \2/p" "$2"
}

figures() { # figures <set> <seed>: nine numbers, or a dash
    local float=$out/$1/float-$2/float.json quantized=$out/$1/quantized-$2
    if [ -f "$float" ] && [ -f "$quantized/qm.json" ]; then
        echo "$(number float_ap50 "$float") $(interval float_ap50_interval "$float") $(number ap50 "$quantized/qm.json") \
$(number float_precision "$float") $(number float_recall "$float") \
$(number precision "$quantized/qm.json") $(number recall "$quantized/qm.json") \
$(cat "${float%/*}/seconds" "$quantized/seconds" | sort -n | tail -n 1)"
    else
        echo -
    fi
}

table() { # prints the table and what is promised; OUT/table.json
    local set seed
    for set in $sets; do
        for seed in $(seq "$seeds"); do echo "$set $seed $(figures "$set" "$seed")"; done
    done | awk -v json="$out/table.json" "$awk_functions"'
        BEGIN {
            least["cards"] = 70
            least["bccd"] = 60
            print "| set | seed | float AP50 (95 % interval) | integer AP50 | float precision / recall | integer precision / recall | longer training, s |"
            print "|---|---|---|---|---|---|---|"
            print "[" > json
        }
        { if (!($1 in known)) { known[$1]; names[++sets] = $1 } }
        $3 == "-" { missing[$1]++; printf "| %s | %s | missing | | | | |\n", $1, $2; next }
        {
            n = ++done[$1]
            printf "| %s | %s | %.2f %% (%.2f .. %.2f) | %.2f %% | %.1f / %.1f %% | %.1f / %.1f %% | %d |\n", $1, $2, 100 * $3,
                100 * $4, 100 * $5, 100 * $6, 100 * $7, 100 * $8, 100 * $9, 100 * $10, $11
            printf "%s  {\"set\": \"%s\", \"seed\": %s, \"float_ap50\": %s, \"float_ap50_interval\": [%s, %s], \"ap50\": %s, \"seconds\": %s}",
                comma, $1, $2, $3, $4, $5, $6, $11 > json
            comma = ",\n"
            float[$1] += 100 * $3; float2[$1] += 1e4 * $3 * $3
            whole[$1] += 100 * $6; whole2[$1] += 1e4 * $6 * $6
            if (n == 1 || 100 * $3 < lowest[$1]) lowest[$1] = 100 * $3
            inside[$1] += $6 >= $4 && $6 <= $5
            if ($11 > longest[$1]) longest[$1] = $11
        }
        END {
            print "\n]" > json
            for (i = 1; i <= sets; i++) {
                s = names[i]
                left = missing[s] ? " (" missing[s] " missing)" : ""
                if (!done[s]) { verdict = verdict "open: " s "\n"; continue }
                printf "%s%s: float %s %%, integer %s %%%s\n", i == 1 ? "\n" : "", s, spread(done[s], float[s], float2[s], "%.2f"),
                    spread(done[s], whole[s], whole2[s], "%.2f"), left
                promise(lowest[s] >= least[s], sprintf("%s float AP50 at least %d %%: lowest %.2f%s", s, least[s], lowest[s], left))
                promise(inside[s] == done[s], sprintf("%s integer AP50 within the interval of the float network: %d of %d%s", s, inside[s], done[s], left))
                promise(longest[s] <= 1800, sprintf("%s trained within 30 minutes: %d s%s", s, longest[s], left))
            }
            printf "\n%s", verdict
            exit broken > 0
        }'
}

if [ $only_table = no ]; then
    for set in $trained; do
        claim "$out/$set"
        for seed in $(seq "$seeds"); do run "$set" "$seed"; done
    done
fi
mkdir -p "$out"
table | tee "$out/table.md"
exit "${PIPESTATUS[0]}"
