#!/usr/bin/env bash
# CIFAR-10 in few bits: ResNet-20, MobileNet v1 0.5 and MLPerf Tiny's ResNet-8, with the recipes of recipes/few_bits. Each
# network is trained in float. `control` trains it on in float, for as many epochs as the fine-tuning has: what quantization
# costs is the difference to the control. The first and the last layer have 8 bits; `all` has few bits there too. The integer
# engine runs each .qm over all test pictures; the table has how far that is from a float32 simulation. The
# command prints a table, what is expected and whether it is kept, and how long the rest will take. OUT/table.md and
# OUT/table.json hold the same after every step. What is finished is not repeated, and an interrupted training continues. The
# exit status is 1 if an expectation is broken. --only takes the beginning of rows: resnet20, or "resnet20 qat 2 2" after
# "resnet20 float". --set is for the trainings of few bits. docs/experiments.md says more.
# Usage: bench/few_bits/cifar10.sh [OUT] [--table] [--seeds N] [--epochs N] [--tune-epochs N] [--only ROW] [--recipes DIR]
#                          [--set SECTION.KEY=VALUE]...
set -eu
cd "$(dirname "$0")/../.."
. bench/runs.sh
out=runs/few_bits only_table=no seeds=3 epochs=30 tune_epochs=15 recipes=recipes only=
settings=()
take_options seeds epochs tune-epochs only recipes set -- "$@"

# Everything that is trained, a line each, in the order in which it is done:
# network, method, bits of weights, bits of inputs, seed.
cells() {
    local seed
    for seed in $(seq "$seeds"); do
        printf "resnet20 %s $seed\n" 'float 32 32' 'control 32 32' 'qat 4 4' 'qat 3 3' 'qat 2 2' 'all 4 4'
        printf "mobilenet %s $seed\n" 'float 32 32' 'control 32 32' 'qat 4 4' 'qat 4 8'
        printf "resnet8 %s $seed\n" 'float 32 32' 'qat 8 8' 'qat 4 8' 'qat 4 4'
    done | grep "^${only:-.*} "
}
[ -n "$(cells)" ] || stop "--only $only: no row begins with that"

folder() { # folder <cell...>
    echo "$out/$1/$2-w$3a$4-$5"
}

epochs_of() { # epochs_of <cell...>: ResNet-8 is a file, which needs no training in float
    case $1-$2 in
    resnet8-float) echo 0 ;;
    resnet8-*) echo $((($([ "$3" = 8 ] && echo 1 || echo 4) * tune_epochs + 4) / 5)) ;;
    *-float) echo "$epochs" ;;
    *) echo "$tune_epochs" ;;
    esac
}

run() { # run <cell...>
    local few=$recipes/few_bits/$1.ini
    [ "$1 $3" != 'resnet20 2' ] || few=$recipes/few_bits/resnet20_2bits.ini
    local dir whole=$recipes/cifar10_$1.ini float="$out/$1/float-w32a32-$5/last.ckpt"
    local own=("train.seed=$5" "train.epochs=$(epochs_of "$@")")
    dir=$(folder "$@")
    case $1-$2 in
    resnet8-float) train "$dir" "$few" - "${own[@]}" quant.enabled=no ;;
    *-float) train "$dir" "$whole" - "${own[@]}" quant.enabled=no ;;
    *-control) train "$dir" "$whole" "$float" "${own[@]}" quant.enabled=no train.lr=0.01 train.warmup=0 ;;
    *)
        own+=("distill.teacher=$float" "quant.weight_bits=$3" "quant.input_bits=$4" train.eval_simulated=yes)
        [ "$2" != all ] || for end in @first @last; do
            own+=("quant.layer $end.weight_bits=$3" "quant.layer $end.input_bits=$4")
        done
        if [ "$1" = resnet8 ]; then own+=(distill.weight=1); else own+=("train.init=$float"); fi
        [ "$1 $3" != "resnet8 8" ] || own+=(train.lr=0.0001)
        train "$dir" "$few" - "${own[@]}" "${settings[@]}"
        deploy "$dir" "$few" "$dir/last.ckpt" --samples 1000
        ;;
    esac
    case $2 in float | control) evaluate "$dir/float.json" "$dir/last.ckpt" ;; esac
}

accuracy() { # accuracy <cell...>: a share, or a dash
    case $2 in
    float | control) number_if_there float_top1 "$(folder "$@")/float.json" ;;
    *) number_if_there top1 "$(folder "$@")/qm.json" ;;
    esac
}

simulated() { # simulated <cell...>: the last figure of the log, in percent, or a dash
    local log
    log=$(folder "$@")/log.csv
    if ! [ -f "$log" ] || ! [ -f "$(folder "$@")/qm.json" ]; then echo - && return; fi
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "simulated_top1") column = i }
        column && $column != "" { last = $column }
        END { print last == "" ? "-" : last }' "$log"
}

differing() { # differing <cell...>: the share of bytes in which what was trained and the engine differ, in percent, or a dash
    awk '/^float32 simulation against engine: / { sub(/^.* differ \(/, ""); share = $1 }
        /^training on integers against engine: / { share = sprintf("%.3f", 100 * $9 / $6) }
        END { print share == "" ? "-" : share }' "$(folder "$@")/export.log" 2>/dev/null || echo -
}

size() { # size <cell...>: of the .qm, in bytes, or a dash
    if [ -f "$(folder "$@")/model.qm" ]; then wc -c <"$(folder "$@")/model.qm"; else echo -; fi
}

estimate() { # of what is left of the trainings; exports and evaluations come on top
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        dir=$(folder $cell)
        kind=float
        case $cell in *" qat "* | *" all "*) kind=qat ;; esac
        # shellcheck disable=SC2086
        echo "${cell%% *}-$kind $(epochs_of $cell) $(tail -qn 1 "$dir/log.csv" 2>/dev/null | cut -d, -f2 | grep . || echo 0)" \
            "$(tail -qn 1 "$dir/times.csv" 2>/dev/null | cut -d, -f2 | grep . || echo 0)"
    done | awk '
        { left[$1] += $2 - $3; done[$1] += $3; seconds[$1] += $4 }
        END {
            for (kind in left) {
                if (!left[kind]) continue
                pace = done[kind] ? seconds[kind] / done[kind] : 0
                unknown += !pace
                total += left[kind] * pace
                printf "%s: %.1f epochs left, %s\n", kind, left[kind], pace ? sprintf("%.1f s each", pace) : "not measured yet"
            }
            printf "about %d h %02d min of training left%s\n", total / 3600, total % 3600 / 60, unknown ? ", and what is not measured yet" : ""
        }'
}

table() { # prints the table and what is promised; OUT/table.json
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        echo "$cell $(accuracy $cell) $(simulated $cell) $(differing $cell) $(size $cell)"
    done | awk -v json="$out/table.json" "$awk_functions"'
        {
            row = $1 " " $2 " " $3 " " $4
            if (!(row in planned)) { rows[++count] = row }
            planned[row]++
            if ($6 == "-") next
            top1 = 100 * $6
            if ($2 == "control" || $1 $2 == "resnet8float") control[$1, $5] = top1
            done[row]++; sum[row] += top1; squares[row] += top1 * top1
            each[row] = each[row] (each[row] == "" ? "" : ", ") "\"" $5 "\": " $6
            if ($9 != "-") bytes[row] = $9
            if ($8 != "-" && (!(row in worst) || $8 > worst[row])) worst[row] = $8
            gap = top1 - $7
            if ($7 != "-" && (gap < 0 ? -gap : gap) >= apart[row] + 0) { apart[row] = gap < 0 ? -gap : gap; known[row] = 1 }
            if (!(($1, $5) in control) || $2 == "float" || $2 == "control") next
            d = top1 - control[$1, $5]
            pairs[row]++; difference[row] += d; difference2[row] += d * d
        }
        function left(row,    n) { n = planned[row] - done[row]; return n ? " (" n " missing)" : "" }
        function print_row(row,    c) {
            split(row, c, " ")
            printf "| %s | %s | %s | %s | %s | %s | %s | %s | %d%s |\n", c[1], c[2], c[3] == 32 ? "" : c[3] " / " c[4],
                done[row] ? spread(done[row], sum[row], squares[row], "%.2f") " %" : "missing",
                pairs[row] ? spread(pairs[row], difference[row], difference2[row], "%+.2f") : "",
                known[row] ? sprintf("%.2f", apart[row]) : "", row in worst ? worst[row] " %" : "", row in bytes ? bytes[row] : "", done[row], left(row)
        }
        function json_row(row, comma,    c) {
            split(row, c, " ")
            printf("  {\"network\": \"%s\", \"method\": \"%s\", \"weight_bits\": %d, \"input_bits\": %d,\n   \"top1\": {%s}, \"bytes\": %s, \"missing\": %d}%s\n",
                c[1], c[2], c[3], c[4], each[row], row in bytes ? bytes[row] : "null", planned[row] - done[row], comma) > json
        }
        function check(row, least, text,    d, n) { # mean(row), or below 0 its difference to the control, >= least
            if (!(row in planned)) return
            n = least < 0 ? pairs[row] : done[row]
            if (!n) { verdict = verdict "open: " text "\n"; return }
            d = sprintf("%.6f", (least < 0 ? difference[row] : sum[row]) / n) + 0
            promise(d >= least, sprintf("%s: %s", text left(row), sprintf(least < 0 ? "%+.2f" : "%.2f", d)))
        }
        END {
            print "| network | method | bits, weights / inputs | top-1 | minus control, points | from simulated, points | bytes that differ | .qm, bytes | seeds |"
            print "|---|---|---|---|---|---|---|---|---|"
            print "[" > json
            for (i = 1; i <= count; i++) { print_row(rows[i]); json_row(rows[i], i < count ? "," : "") }
            print "]" > json
            r = "resnet20"; m = "mobilenet"
            check(r " qat 4 4", -0.5, r " 4/4 at most 0.5 points below the control")
            check(r " qat 3 3", -1.2, r " 3/3 at most 1.2 points below it")
            check(r " qat 2 2", -3.0, r " 2/2 at most 3.0 points below it")
            check(r " all 4 4", -1.0, r " all layers 4/4 at most 1.0 points below it")
            check(m " qat 4 4", -1.5, m " 4/4 at most 1.5 points below the control")
            check(m " qat 4 8", -0.3, m " 4/8 at most 0.3 points below it")
            check("resnet8 qat 8 8", 87.0, "resnet8 8/8 at least 87.0 %")
            check("resnet8 qat 4 8", 86.5, "resnet8 4/8 at least 86.5 %")
            check("resnet8 qat 4 4", 86.0, "resnet8 4/4 at least 86.0 %")
            for (i = 1; i <= count; i++)
                if (rows[i] in worst && rows[i] !~ / 8$/)
                    promise(worst[rows[i]] <= 1, sprintf("%s: at most 1 %% of the bytes differ: %s %%", rows[i], worst[rows[i]]))
            for (i = 1; i <= count; i++)
                if (known[rows[i]])
                    promise(apart[rows[i]] <= 0.2, sprintf("%s: simulated and integer accuracy at most 0.2 points apart: %.2f", rows[i], apart[rows[i]]))
            printf "\n%s", verdict
            exit broken > 0
        }'
}

if [ $only_table = no ]; then
    claim "$out"
    # shellcheck disable=SC2086
    cells | while read -r cell; do
        run $cell </dev/null
        table >"$out/table.md" || true
    done
fi
mkdir -p "$out"
estimate
echo
table | tee "$out/table.md"
exit "${PIPESTATUS[0]}"
