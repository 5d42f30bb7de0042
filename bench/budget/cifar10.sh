#!/usr/bin/env bash
# CIFAR-10 with ResNet-20 and MobileNet v1 0.5: bits that a budget search chooses, against 4 bits everywhere. From each
# float training come three fine-tunings of equal length, with the settings of recipes/few_bits:
#   uniform  4 bits for all weights and activations, those of the first and the last layer too
#   same     a search with the flash and the macs_bits of `uniform`
#   smaller  a search with 90 % of its flash, and its macs_bits
# The float trainings are those of bench/few_bits/cifar10.sh: with --floats DIR they are taken from its folder.
# The integer engine runs each model over all test pictures. The command prints a table, what is expected and whether it
# is kept; OUT/table.md holds the same after every step. Flash is the size of the .qm, as the search computes it; the
# command compares both. What is finished is not repeated, and what was interrupted continues. The exit status is 1 if an
# expectation is broken.
# Usage: bench/budget/cifar10.sh [OUT] [--table] [--seeds N] [--epochs N] [--tune-epochs N] [--only NETWORK] [--recipes DIR]
#                         [--floats DIR] [--sensitivity KIND]
set -eu
cd "$(dirname "$0")/../.."
. bench/runs.sh
out=runs/budget only_table=no seeds=3 epochs=30 tune_epochs=10 recipes=recipes only= floats= sensitivity=measured
take_options seeds epochs tune-epochs only recipes floats sensitivity -- "$@"
case $only in '' | resnet20 | mobilenet) ;; *) stop "--only $only: no such network" ;; esac
few=(quant.enabled=yes quant.ranges=tqt quant.range_rate=10 quant.fraction=15 quant.quant_delay=0 quant.learn_delay=100
    quant.bn_freeze_delay=80% quant.forward=fake_quant)
tuning=("train.epochs=$tune_epochs" train.optimizer=adam train.nesterov=no train.lr=0.001 train.schedule=cosine train.warmup=0
    train.weight_decay=0 model.dropout=0 distill.weight=0.5 distill.temperature=4)

cells() { # network, method, seed: in the order in which they are done
    local net seed method
    for seed in $(seq "$seeds"); do
        for net in resnet20 mobilenet; do
            for method in float uniform same smaller; do echo "$net $method $seed"; done
        done
    done | grep "^${only:-.*} "
}

folder() { # folder <network> <method> <seed>
    case $2 in
    float) echo "${floats:-$out}/$1/float-w32a32-$3" ;;
    *) echo "$out/$1/$2-$3" ;;
    esac
}

search() { # search <folder> <recipe> <checkpoint> <section.key=value...>: budget.ini, in the folder
    local dir=$1 recipe=$2 init=$3 setting
    local options=()
    shift 3
    mkdir -p "$dir"
    same_settings "$dir" "$recipe" "$init" "train.init=$init" "$@"
    [ ! -f "$dir/budget.ini" ] || return 0
    for setting in "${few[@]}" "$@"; do options+=(--set "$setting"); done
    echo "$(date +%T) searching $dir" >&2
    logged "$dir/search.log" "$tools/qat-train" --budget --dry-run "$recipe" --init "$init" --out "$dir" "${options[@]}"
}

# What 4 bits everywhere cost: a search that may choose nothing.
cost() { # cost <network> <seed> <recipe> <checkpoint>
    search "$out/$1/cost-$2" "$3" "$4" 'budget.keep=*' quant.weight_bits=4 quant.activation_bits=4 budget.flash=1024M budget.samples=100
}

choose() { # choose <folder> <network> <seed> <recipe> <checkpoint> <percent of flash>
    local cost=$out/$2/cost-$3/budget.json
    search "$1" "$4" "$5" "budget.flash=$(($(number flash "$cost") * $6 / 100))" "budget.macs_bits=$(number macs_bits "$cost")" \
        budget.weight_bits=2,3,4,5,6,8 budget.activation_bits=3,4,5,6,8 "budget.sensitivity=$sensitivity" \
        "budget.table=${7:-$out/$2/sensitivity-$3.csv}"
}

run() { # run <network> <method> <seed>
    local dir float recipe=$recipes/cifar10_$1.ini whole=$recipes/cifar10_$1.ini percent=100 bits=()
    dir=$(folder "$@")
    float=$(folder "$1" float "$3")/last.ckpt
    case $2 in
    float)
        [ -z "$floats" ] || [ -f "$dir/seconds" ] || stop "$dir is not a finished training; bench/few_bits/cifar10.sh $floats does it"
        train "$dir" "$whole" - "train.seed=$3" "train.epochs=$epochs" quant.enabled=no
        evaluate "$dir/float.json" "$dir/last.ckpt"
        cost "$1" "$3" "$whole" "$float"
        return
        ;;
    uniform) bits=(quant.weight_bits=4 quant.activation_bits=4) ;;
    *)
        [ "$2" != smaller ] || percent=90
        choose "$dir-search" "$1" "$3" "$whole" "$float" $percent
        recipe=$dir-search/budget.ini
        ;;
    esac
    train "$dir" "$recipe" "$float" "train.seed=$3" "${few[@]}" "${bits[@]}" "${tuning[@]}" "distill.teacher=$float"
    deploy "$dir" "$whole" "$dir/last.ckpt" --samples 1000
}

# The same search anew, with nothing that was measured before: 0 if every byte is the same.
again() { # again <network>
    local dir=$out/$1/again-1
    [ -f "$out/$1/same-1-search/budget.ini" ] || return 2
    choose "$dir" "$1" 1 "$recipes/cifar10_$1.ini" "$(folder "$1" float 1)/last.ckpt" 100 "$dir/sensitivity.csv" || return 1
    cmp -s "$dir/budget.ini" "$out/$1/same-1-search/budget.ini" || return 1
}

# An impossible budget: the message.
impossible() { # impossible <network>
    "$tools/qat-train" --budget --dry-run "$recipes/cifar10_$1.ini" --init "$(folder "$1" float 1)/last.ckpt" --out "$out/$1/impossible" \
        --set quant.enabled=yes --set budget.flash=1K 2>&1 | grep 'least that is possible' | sed 's/.*: budget/budget/'
}

accuracy() { # accuracy <network> <method> <seed>
    if [ "$2" = float ]; then
        number_if_there float_top1 "$(folder "$@")/float.json"
    else
        number_if_there top1 "$(folder "$@")/qm.json"
    fi
}

flash() { # flash <network> <method> <seed>
    case $2 in
    float) echo 0 ;;
    uniform) number_if_there flash "$out/$1/cost-$3/budget.json" ;;
    *) number_if_there flash "$(folder "$@")-search/budget.json" ;;
    esac
}

table() { # prints the table and what is promised
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        echo "$cell $(accuracy $cell) $(flash $cell)"
    done | awk "$awk_functions"'
        {
            row = $1 " " $2
            if (!(row in planned)) rows[++count] = row
            planned[row]++
            if ($4 == "-") next
            done[row]++; sum[row] += 100 * $4; squares[row] += 10000 * $4 * $4; bytes[row] += $5
        }
        function left(row,    n) { n = planned[row] - done[row]; return n ? " (" n " missing)" : "" }
        function mean(row) { return sum[row] / done[row] }
        END {
            print "| network | bits | top-1 | flash, bytes | seeds |\n|---|---|---|---|---|"
            for (i = 1; i <= count; i++) {
                split(rows[i], c, " ")
                printf "| %s | %s | %s | %s | %d%s |\n", c[1], c[2], done[rows[i]] ? spread(done[rows[i]], sum[rows[i]], squares[rows[i]], "%.2f") " %" : "missing",
                    bytes[rows[i]] ? sprintf("%d", bytes[rows[i]] / done[rows[i]]) : "", done[rows[i]], left(rows[i])
            }
            for (k = 1; k <= 2; k++) {
                net = k == 1 ? "resnet20" : "mobilenet"
                text = net ": at least 0.5 points above 4 bits everywhere in the same flash, or as good in 10 % less"
                if (!(net " float" in planned)) continue
                u = net " uniform"; s = net " same"; l = net " smaller"
                if (!done[u] || !done[s] || !done[l]) { verdict = verdict "open: " text "\n"; continue }
                better = sprintf("%.6f", mean(s) - mean(u)) + 0
                equal = sprintf("%.6f", mean(l) - mean(u)) + 0
                less = 100 - 100 * (bytes[l] / done[l]) / (bytes[u] / done[u])
                promise(better >= 0.5 && bytes[s] / done[s] <= bytes[u] / done[u] || equal >= 0 && less >= 10,
                    sprintf("%s: %+.2f%s; %+.2f with %.1f %% less", text, better, left(s), equal, less))
            }
            printf "\n%s", verdict
            exit broken > 0
        }'
}

checks() { # prints what is promised of the search itself
    local net method seed status least dir broken=0
    cells | grep -v ' float ' | while read -r net method seed; do
        dir=$(folder "$net" "$method" "$seed")
        [ ! -f "$dir/model.qm" ] || [ "$(wc -c <"$dir/model.qm")" = "$(flash "$net" "$method" "$seed")" ] ||
            echo "BROKEN: $dir/model.qm has other bytes than the search said"
    done
    for net in $(cells | cut -d' ' -f1 | sort -u); do
        status=0
        again "$net" || status=$?
        case $status in
        0) echo "kept: $net: the same search gives the same bytes" ;;
        2) echo "open: $net: the same search gives the same bytes" && continue ;;
        *) echo "BROKEN: $net: the same search gives other bytes" && broken=1 ;;
        esac
        least=$(impossible "$net" || true)
        if [ -n "$least" ]; then echo "kept: $net: an impossible budget is refused: $least"; else
            echo "BROKEN: $net: an impossible budget is not refused"
            broken=1
        fi
    done
    return $broken
}

if [ $only_table = no ]; then
    claim "$out"
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        run $cell </dev/null
        table >"$out/table.md" || true
    done
    checks >"$out/checks.md" || true
fi
mkdir -p "$out"
status=0
table >"$out/table.md" || status=1
cat "$out/table.md"
[ ! -f "$out/checks.md" ] || cat "$out/checks.md"
! grep -qs '^BROKEN' "$out/checks.md" || status=1
exit $status
