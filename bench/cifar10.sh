#!/usr/bin/env bash
# CIFAR-10 with ResNet-20 and MobileNet v1 0.5. Each network is trained in float. From each float checkpoint come a
# training with simulated quantization (QAT) and post-training quantization (PTQ), with 8 and 4 bits. The integer
# engine runs each .qm over all test pictures. The command prints a table, what is expected and whether it is kept,
# and how long the rest will take. OUT/table.md and OUT/table.json hold the same after every step. What is finished is
# not repeated, and an interrupted training continues. The exit status is 1 if an expectation is broken.
# docs/experiments.md says more.
# Usage: bench/cifar10.sh [OUT] [--table] [--seeds N] [--epochs N] [--tune-epochs N] [--recipes DIR]
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out=runs/cifar10 only_table=no seeds=3 epochs=20 tune_epochs=3 recipes=recipes
take_options seeds epochs tune-epochs recipes -- "$@"

# Everything that is trained or quantized, a line each, in the order in which it is done:
# network, method, layout, bits of weights, bits of activations, seed.
cells() {
    local net seed layout
    for seed in $(seq "$seeds"); do
        for net in resnet20 mobilenet; do
            echo "$net float - 32 32 $seed"
            [ "$seed" != 1 ] || printf "$net %s 1\n" 'ptq int8 8 8' 'ptq uint8 8 8' 'ptq int8 4 4' 'ptq-mse int8 4 4'
            for layout in int8 uint8; do echo "$net qat $layout 8 8 $seed"; done
            [ "$seed" != 1 ] || printf "$net %s 1\n" 'qat int8 4 4' 'integer-qat int8 4 4' 'qat int8 4 8'
        done
    done
}

folder() { # folder <cell...>
    echo "$out/$1/$2-$3-w$4a$5-$6"
}

epochs_of() { # epochs_of <cell...>: fewer bits are given twice as many
    case $2$4$5 in
    float*) echo "$epochs" ;;
    qat88) echo "$tune_epochs" ;;
    *qat*) echo $((2 * tune_epochs)) ;;
    *) echo 0 ;;
    esac
}

run() { # run <cell...>
    local dir recipe=$recipes/cifar10_$1.ini float="$out/$1/float---w32a32-$6/last.ckpt"
    local bits=("quant.layout=$3" "quant.weight_bits=$4" "quant.activation_bits=$5")
    local ptq=(--samples 1000 --ptq recipe --set "${bits[0]}" --set "${bits[1]}" --set "${bits[2]}")
    dir=$(folder "$@")
    case $2 in
    float)
        train "$dir" "$recipe" - "train.seed=$6" "train.epochs=$epochs" quant.enabled=no
        evaluate "$dir/float.json" "$dir/last.ckpt"
        ;;
    qat | integer-qat)
        bits+=("quant.forward=$([ "$2" = qat ] && echo fake_quant || echo integer)")
        fine_tune "$dir" "$recipe" "$float" "$(epochs_of "$@")" 0.01 "train.seed=$6" "${bits[@]}"
        deploy "$dir" "$recipe" "$dir/last.ckpt" --samples 1000
        ;;
    ptq) deploy "$dir" "$recipe" "$float" "${ptq[@]}" ;;
    ptq-mse) deploy "$dir" "$recipe" "$float" "${ptq[@]}" --observer mse --correct-bias ;;
    esac
}

accuracy() { # accuracy <cell...>: a share, or a dash
    if [ "$2" = float ]; then
        number_if_there float_top1 "$(folder "$@")/float.json"
    else
        number_if_there top1 "$(folder "$@")/qm.json"
    fi
}

# A few steps of each kind, for the estimate: stopped after a while.
measure_speed() {
    local net kind enabled dir
    for net in resnet20 mobilenet; do
        for kind in float qat; do
            dir=$out/speed/$net-$kind
            [ -f "$dir/times.csv" ] && continue
            enabled=no
            [ "$kind" = float ] || enabled=yes
            mkdir -p "$dir"
            timeout --signal=INT 30 "$tools/qat-train" "$recipes/cifar10_$net.ini" --out "$dir" --overwrite \
                --set train.epochs=1 --set train.log_every=1 --set "quant.enabled=$enabled" \
                --set quant.quant_delay=0 >"$dir/train.log" 2>&1 || true
        done
    done
}

# Seconds an epoch of a kind of training, by the last rows of all its logs; 0 where there is none.
pace() { # pace <network> <float|qat>
    local dir
    for dir in "$out/speed/$1-$2" "$out/$1/$2"-*; do
        [ ! -f "$dir/times.csv" ] || echo "$(tail -n 1 "$dir/log.csv" | cut -d, -f2) $(tail -n 1 "$dir/times.csv" | cut -d, -f2)"
    done | awk '$1 > 0 { epochs += $1; seconds += $2 } END { print epochs ? seconds / epochs : 0 }'
}

estimate() { # of what is left of the trainings; exports and evaluations come on top
    local net kind pace
    for net in resnet20 mobilenet; do
        for kind in float qat integer-qat; do
            pace=$(pace "$net" "${kind#integer-}")
            cells | grep "^$net $kind " | while read -r cell; do
                # shellcheck disable=SC2086
                echo "$pace $(epochs_of $cell) $(tail -qn 1 "$(folder $cell)/log.csv" 2>/dev/null | cut -d, -f2)"
            done | awk -v what="$net, $kind" '
                { left += $2 - $3; total += $2; pace = $1 }
                END { printf "%s: %.1f of %d epochs left, %.1f s each\n", what, left, total, pace > "/dev/stderr"; print left * pace }'
        done
    done | awk '{ s += $1 } END { printf "about %d h %02d min of training left\n", s / 3600, s % 3600 / 60 }'
}

table() { # prints the table and what is promised; OUT/table.json
    cells | while read -r cell; do
        # shellcheck disable=SC2086
        echo "$cell $(accuracy $cell)"
    done | awk -v json="$out/table.json" "$awk_functions"'
        {
            row = $1 " " $2 " " $3 " " $4 " " $5
            if (!(row in planned)) { rows[++count] = row }
            planned[row]++
            if ($7 == "-") next
            top1 = 100 * $7
            if ($2 == "float") float[$1, $6] = top1
            done[row]++; sum[row] += top1; squares[row] += top1 * top1
            each[row] = each[row] (each[row] == "" ? "" : ", ") "\"" $6 "\": " $7
            if (!(($1, $6) in float)) next
            d = top1 - float[$1, $6]
            pairs[row]++; difference[row] += d; difference2[row] += d * d
        }
        function left(row,    n) { n = planned[row] - done[row]; return n ? " (" n " missing)" : "" }
        function print_row(row,    c) {
            split(row, c, " ")
            printf "| %s | %s | %s | %s | %s | %s | %d%s |\n", c[1], c[2], c[3] == "-" ? "" : c[3],
                c[2] == "float" ? "" : c[4] " / " c[5],
                done[row] ? spread(done[row], sum[row], squares[row], "%.2f") " %" : "missing",
                pairs[row] && c[2] != "float" ? spread(pairs[row], difference[row], difference2[row], "%+.2f") : "",
                done[row], left(row)
        }
        function json_row(row, comma,    c) {
            split(row, c, " ")
            printf("  {\"network\": \"%s\", \"method\": \"%s\", \"layout\": \"%s\", \"weight_bits\": %d, \"activation_bits\": %d,\n" \
                "   \"top1\": {%s}, \"mean\": %s, \"deviation\": %s, \"missing\": %d}%s\n", c[1], c[2], c[3], c[4], c[5], each[row],
                done[row] ? sprintf("%.6f", sum[row] / done[row] / 100) : "null",
                done[row] > 1 ? sprintf("%.6f", deviation(done[row], sum[row], squares[row]) / 100) : "null",
                planned[row] - done[row], comma) > json
        }
        function check(row, other, least, most, text,    d) { # least <= mean(row) - mean(other) <= most
            if (!done[row] || other != "" && !done[other]) { verdict = verdict "open: " text "\n"; return }
            d = sprintf("%.6f", sum[row] / done[row] - (other == "" ? 0 : sum[other] / done[other])) + 0
            promise(d >= least && d <= most, sprintf("%s: %+.2f", text left(row), d))
        }
        END {
            print "| network | method | layout | bits, weights / activations | top-1 | minus float, points | seeds |"
            print "|---|---|---|---|---|---|---|"
            print "[" > json
            for (i = 1; i <= count; i++) { print_row(rows[i]); json_row(rows[i], i < count ? "," : "") }
            print "]" > json
            check("resnet20 float - 32 32", "", 78, 100, "resnet20 float at least 78 %")
            for (k = 1; k <= 2; k++) {
                net = k == 1 ? "resnet20" : "mobilenet"
                check(net " qat int8 8 8", net " float - 32 32", -0.5, 100, net " QAT 8/8 int8 at most 0.5 points below float")
                check(net " qat uint8 8 8", net " float - 32 32", -0.5, 100, net " QAT 8/8 uint8 at most 0.5 points below float")
                check(net " qat int8 4 4", net " ptq int8 4 4", 5, 100, net " QAT 4/4 at least 5 points above PTQ 4/4")
            }
            printf "\n%s", verdict
            exit broken > 0
        }'
}

if [ $only_table = no ]; then
    claim "$out"
    measure_speed
    # shellcheck disable=SC2086
    cells | while read -r cell; do
        run $cell </dev/null
        estimate 2>/dev/null
        table >"$out/table.md" || true
    done
fi
mkdir -p "$out"
estimate
echo
table | tee "$out/table.md"
exit "${PIPESTATUS[0]}"
