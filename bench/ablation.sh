#!/usr/bin/env bash
# The ablation of Jacob et al., tables 4.7 and 4.8: bits of weights x bits of activations, 8 to 4 each (fewer with
# --bits 8,4), for one recipe. The training of each cell begins with a float network (or as the recipe says) and has
# simulated quantization. The integer engine runs its .qm over all test data. The table shows the change of accuracy
# relative to float. It is printed with the cells that are done, also with --table. What is finished is not repeated.
# The same tables are drawn as heat maps: OUT/heat-FIGURE.png and .svg. docs/experiments.md says more.
# --figures: other figures than top1, by the names that qat-eval --json prints (for faces: category_ap,within), with a
# table each.
# --findings: also print which of the paper's statements about its tables are true here (ablation_findings.awk).
# Usage: bench/ablation.sh [OUT] [--table] [--recipe FILE] [--layout uint8|int8] [--bits 8,7,6,5,4] [--seeds N]
#                          [--figures NAME,...] [--findings] [--jobs N] [--verify N]
#                          [--from float|scratch] [--tune-epochs N] [--tune-lr X] [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out='' only_table=no recipe='' layout=uint8 seeds=1 bits=8,7,6,5,4 from=float tune_epochs=1 tune_lr=0.02
figures=top1 findings=no jobs=1 verify=1000
settings=()
while [ $# -gt 0 ]; do
    case $1 in
    --table) only_table=yes ;;
    --recipe) recipe=${2:?} && shift ;;
    --layout) layout=${2:?} && shift ;;
    --bits) bits=${2:?} && shift ;;
    --seeds) seeds=${2:?} && shift ;;
    --figures) figures=${2:?} && shift ;;
    --findings) findings=yes ;;
    --jobs) jobs=${2:?} && shift ;;
    --verify) verify=${2:?} && shift ;; # samples on which each model is held against the exact evaluation
    --from) from=${2:?} && shift ;;
    --tune-epochs) tune_epochs=${2:?} && shift ;;
    --tune-lr) tune_lr=${2:?} && shift ;;
    --set) settings+=("${2:?}") && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
case $from in float | scratch) ;; *) stop "--from $from: expected float or scratch" ;; esac
if [ -z "$recipe" ]; then # what trains in minutes: clothes where they are there, else drawn digits
    recipe=recipes/quickstart.ini
    [ ! -d "${QAT_DATA:-../shared/data}/fashion-mnist" ] || recipe=recipes/fashion_mnist.ini
fi
[ -f "$recipe" ] || stop "$recipe: no such recipe"
out=${out:-runs/ablation/$(basename "$recipe" .ini)}

cells() { # bits of weights, bits of activations, seed; a line each, in the order in which they are done
    local seed w a
    for seed in $(seq "$seeds"); do
        for w in ${bits//,/ }; do
            for a in ${bits//,/ }; do echo "$w $a $seed"; done
        done
    done
}

train_float() { # train_float <seed>
    local dir=$out/float-$1
    train "$dir" "$recipe" - "train.seed=$1" quant.enabled=no "${settings[@]}"
    evaluate "$dir/float.json" "$dir/last.ckpt"
}

run() { # run <bits of weights> <bits of activations> <seed>
    local dir=$out/$layout-w$1a$2-$3
    local quant=("train.seed=$3" "quant.layout=$layout" "quant.weight_bits=$1" "quant.activation_bits=$2" \
        quant.forward=fake_quant "${settings[@]}")
    if [ "$from" = float ]; then
        fine_tune "$dir" "$recipe" "$out/float-$3/last.ckpt" "$tune_epochs" "$tune_lr" "${quant[@]}"
    else
        train "$dir" "$recipe" - quant.enabled=yes "${quant[@]}"
    fi
    deploy "$dir" "$recipe" "$dir/last.ckpt" --samples "$verify"
}

figures_of() { # figures_of <figure>: bits of weights, of activations, seed, float figure, integer figure; or a dash
    local w a seed
    cells | while read -r w a seed; do
        echo "$w $a $seed $(number_if_there "float_$1" "$out/float-$seed/float.json") \
$(number_if_there "$1" "$out/$layout-w${w}a$a-$seed/qm.json")"
    done
}

table() { # table <figure>: prints it; OUT/table.json, OUT/table_FIGURE.json of other figures than top1
    local json=$out/table.json title
    title=$(title_of "$1")
    [ "$1" = top1 ] || json=$out/table_$1.json
    figures_of "$1" | awk -v bits="$bits" -v json="$json" -v figure="$1" -v title="$title" "$awk_functions"'
        { planned++ }
        $4 != "-" && !($3 in float) { float[$3]; m++; fsum += 100 * $4; fsquares += 10000 * $4 * $4 }
        $5 != "-" {
            change = 100 * ($5 - $4) / $4
            n[$1, $2]++; sum[$1, $2] += change; squares[$1, $2] += change * change; share[$1, $2] += $5
            done++
        }
        function cell(w, a) {
            return n[w, a] ? spread(n[w, a], sum[w, a], squares[w, a], "%+.2f") " %" : "missing"
        }
        function json_cell(w, a, comma,    k) {
            k = n[w, a]
            printf("  {\"weight_bits\": %d, \"activation_bits\": %d, \"seeds\": %d, \"%s\": %s, " \
                "\"relative_change\": %s, \"deviation\": %s}%s\n", w, a, k, figure,
                k ? sprintf("%.6f", share[w, a] / k) : "null",
                k ? sprintf("%.6f", sum[w, a] / k / 100) : "null",
                k > 1 ? sprintf("%.6f", deviation(k, sum[w, a], squares[w, a]) / 100) : "null", comma) > json
        }
        END {
            count = split(bits, b, ",")
            print "float " title ": " (m ? spread(m, fsum, fsquares, "%.2f") " %" : "missing") "; " done + 0 " of " planned " cells done\n"
            head = "| weights \\ activations |"; line = "|---|"
            for (i = 1; i <= count; i++) { head = head " " b[i] " |"; line = line "---|" }
            print head "\n" line
            print "[" > json
            for (i = 1; i <= count; i++) {
                text = "| **" b[i] "** |"
                for (k = 1; k <= count; k++) {
                    text = text " " cell(b[i], b[k]) " |"
                    json_cell(b[i], b[k], i * k < count * count ? "," : "")
                }
                print text
            }
            print "]" > json
        }'
}

title_of() { # title_of <figure>
    case $1 in top1) echo top-1 ;; category_ap) echo "category AP" ;; within) echo "values right" ;; *) echo "$1" ;; esac
}

draw() { # draw <figure>: OUT/heat-FIGURE.png and .svg, once there is a cell; a build without cairo says that it has none
    figures_of "$1" | awk -v bits="$bits" '
        $5 != "-" && $4 > 0 { n[$1, $2]++; sum[$1, $2] += 100 * ($5 - $4) / $4; done++ }
        END {
            count = split(bits, b, ",")
            for (i = 1; done && i <= count; i++)
                for (k = 1; k <= count; k++) print b[i], b[k], n[b[i], b[k]] ? sum[b[i], b[k]] / n[b[i], b[k]] : "nan"
        }' >"$out/heat.part"
    [ ! -s "$out/heat.part" ] || "${tools%/*}/bench/heat_map" "$out/heat-$1" "$(basename "$recipe" .ini), seeds: $seeds" \
        "bits of activations" "bits of weights" "change of $(title_of "$1") against float [%]" <"$out/heat.part" ||
        echo "$(basename "$0"): $out has no heat map of $1" >&2
    rm -f "$out/heat.part"
}

wait_below() { # wait_below <n>: until fewer cells are being done; each leaves the tables as they are then
    while [ $running -ge "$1" ]; do
        wait -n
        running=$((running - 1))
        tables >"$out/table.md"
    done
}

tables() {
    local figure
    for figure in ${figures//,/ }; do
        [ "$figure" = "${figures%%,*}" ] || echo
        table "$figure"
        [ $findings = no ] || { echo && figures_of "$figure" | grep -v -e ' -' | awk -f bench/ablation_findings.awk; }
    done
}

if [ $only_table = no ]; then
    claim "$out"
    cells >"$out/cells"
    running=0 begun=0
    while read -r w a seed; do
        if [ "$seed" != "$begun" ]; then
            wait_below 1
            train_float "$seed" </dev/null
            begun=$seed
        fi
        wait_below "$jobs"
        run "$w" "$a" "$seed" </dev/null &
        running=$((running + 1))
    done <"$out/cells"
    wait_below 1
fi
mkdir -p "$out"
tables | tee "$out/table.md"
for figure in ${figures//,/ }; do draw "$figure"; done
