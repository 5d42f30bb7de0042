#!/usr/bin/env bash
# A demonstration with faces-london. For each seed, recipes/faces_london.ini (age, gender, smile) and
# faces_london_detect.ini (where the face is) are trained and exported, and the integer engine runs them over the 20
# people of the validation split. The command prints their figures beside those of constant answers: the age that is
# right most often among the training pictures, scores that are all equal, and the mean box. What is finished is not
# repeated. OUT/table.md holds the same.
# Usage: bench/faces_london.sh [OUT] [--table] [--seeds N] [--recipes DIR] [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out=runs/faces_london only_table=no seeds=3 recipes=recipes
settings=()
while [ $# -gt 0 ]; do
    case $1 in
    --table) only_table=yes ;;
    --seeds) seeds=${2:?} && shift ;;
    --recipes) recipes=${2:?} && shift ;;
    --set) settings+=("${2:?}") && shift ;;
    -*) stop "unknown option $1" ;;
    *) out=$1 ;;
    esac
    shift
done
data=${QAT_DATA:-../shared/data}/faces-london
[ -d "$data" ] || stop "$data: there are no pictures"

run() { # run <recipe> <seed>
    local recipe=$recipes/$1.ini dir=$out/$1-$2
    train "$dir" "$recipe" - "train.seed=$2" "${settings[@]}"
    evaluate "$dir/float.json" "$dir/last.ckpt"
    deploy "$dir" "$recipe" "$dir/last.ckpt"
}

numbers() { # numbers <recipe> <key>: of the float and the integer networks, a line a seed; a dash: not done
    local seed
    for seed in $(seq "$seeds"); do
        echo "$(number_if_there "float_$2" "$out/$1-$seed/float.json") $(number_if_there "$2" "$out/$1-$seed/qm.json")"
    done
}

row() { # row <title> <recipe> <key> <factor> <constant answer>
    numbers "$2" "$3" | awk -v title="$1" -v factor="$4" -v constant="$5" "$awk_functions"'
        $1 != "-" && $2 != "-" { n++; f += $1 * factor; ff += ($1 * factor) ^ 2; q += $2 * factor; qq += ($2 * factor) ^ 2 }
        END {
            if (n) printf "| %s | %s | %s | %s | %d |\n", title, constant, spread(n, f, ff, "%.2f"), spread(n, q, qq, "%.2f"), n
            else printf "| %s | %s | missing | missing | 0 |\n", title, constant
        }'
}

constant_age() { # the age that is right most often in training: it, % of the others within 5 years of it, mean error
    awk -F, '
        NR > 1 && $5 != "NA" && $2 == "train" { train[++n] = $5 }
        NR > 1 && $5 != "NA" && $2 == "val" { val[++m] = $5 }
        function within(all, count, a,    i, k) {
            for (i = 1; i <= count; i++) k += all[i] >= a - 5 && all[i] <= a + 5
            return k / count
        }
        END {
            for (a = 18; a <= 54; a++) if (within(train, n, a) > best) { best = within(train, n, a); chosen = a }
            for (i = 1; i <= m; i++) error += val[i] > chosen ? val[i] - chosen : chosen - val[i]
            printf "%d %.2f %.2f", chosen, 100 * within(val, m, chosen), error / m
        }' "$data/attributes.csv"
}

chance() { # the mean over male and smiling of their share among the validation pictures: AP of equal scores
    awk -F, 'NR > 1 && $2 == "val" { n++; male += $6 == "male"; smile += $4 == "smiling" }
        END { printf "%.2f", 50 * (male + smile) / n }' "$data/attributes.csv"
}

boxes() { # boxes <train|val>: x y width height of each face
    tr -d ' \n' <"$data/instances_$1.json" | grep -o '"bbox":\[[^]]*\]' | sed 's/.*\[//; s/\]//; s/,/ /g'
}

mean_box() { # share of validation faces that the mean training box meets at an IoU of 1/2, in percent
    { boxes train | sed 's/^/train /' && boxes val | sed 's/^/val /'; } | awk '
        function least(a, b) { return a < b ? a : b }
        function most(a, b) { return a > b ? a : b }
        $1 == "train" { n++; for (i = 1; i <= 4; i++) mean[i] += $(i + 1) }
        $1 == "val" {
            m++
            for (i = 1; i <= 4; i++) b[i] = mean[i] / n
            w = least(b[1] + b[3], $2 + $4) - most(b[1], $2); h = least(b[2] + b[4], $3 + $5) - most(b[2], $3)
            both = w > 0 && h > 0 ? w * h : 0
            met += both / (b[3] * b[4] + $4 * $5 - both) >= 0.5
        }
        END { printf "%.2f", 100 * met / m }'
}

table() {
    local best
    read -ra best <<<"$(constant_age)"
    echo "| | constant answer | float | integer (8 / 8) | seeds |"
    echo "|---|---|---|---|---|"
    row "age within 5 years, %" faces_london within 100 "always ${best[0]}: ${best[1]}"
    row "mean error of the age, years" faces_london mean_error 1 "always ${best[0]}: ${best[2]}"
    row "category AP of male and smiling, %" faces_london category_ap 100 "$(chance)"
    row "faces, AP50, %" faces_london_detect ap50 100 "the mean box: $(mean_box)"
    row "faces, AP@[.5:.95], %" faces_london_detect ap 100 "-"
}

if [ $only_table = no ]; then
    claim "$out"
    for seed in $(seq "$seeds"); do
        for recipe in faces_london faces_london_detect; do run $recipe "$seed" </dev/null; done
    done
fi
mkdir -p "$out"
table | tee "$out/table.md"
