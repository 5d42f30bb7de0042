# shellcheck shell=bash
# Sourced by the scripts that compare float networks with integer ones. For each network of $nets and each seed there
# is a float training. From its checkpoint begins a training with simulated quantization for each of $bits. The
# integer engine runs the .qm over all test pictures. The script that sources this one sets nets, bits, layout, and
# two functions:
#     describe <network>      sets recipe, and the arrays extra (settings of the network) and float_extra (settings that
#                             only its float training has)
#     orderings               reads lines `network kind n mean deviation ...`, and says what they show
# Folders have the names that bench/cifar10.sh gives them, so its cells can be used here too (--take).
# shellcheck disable=SC2154
. bench/runs.sh
out=${out:?} only_table=no seeds=3 epochs=20 tune_epochs=3 take='' only=$nets recipes=recipes
take_options seeds epochs tune-epochs take recipes only -- "$@"

float_cell() { # float_cell <network> <seed>: its folder's name
    echo "$1/float---w32a32-$2"
}

integer_cell() { # integer_cell <network> <bits> <seed>
    echo "$1/qat-$layout-w$2a$2-$3"
}

taken() { # taken <cell>: what another folder has finished of it is copied; other settings are refused later
    [ -n "$take" ] && [ -f "$take/$1/seconds" ] && [ ! -e "$out/$1" ] || return 0
    mkdir -p "$out/$1"
    find "$take/$1" -maxdepth 1 -type f ! -name best.ckpt -exec cp {} "$out/$1" \;
}

train_float() { # train_float <network> <seed>
    local cell
    cell=$(float_cell "$@")
    taken "$cell"
    train "$out/$cell" "$recipe" - "train.seed=$2" "train.epochs=$epochs" quant.enabled=no "${extra[@]}" "${float_extra[@]}"
    evaluate "$out/$cell/float.json" "$out/$cell/last.ckpt"
}

train_integer() { # train_integer <network> <bits> <seed>
    local cell
    cell=$(integer_cell "$@")
    taken "$cell"
    fine_tune "$out/$cell" "$recipe" "$out/$(float_cell "$1" "$3")/last.ckpt" "$tune_epochs" 0.01 "train.seed=$3" \
        "quant.layout=$layout" "quant.weight_bits=$2" "quant.activation_bits=$2" quant.forward=fake_quant "${extra[@]}"
    deploy "$out/$cell" "$recipe" "$out/$cell/last.ckpt" --samples 1000
}

# A line for each network evaluated: network, kind, seed, epochs of float training, top-1, top-5.
figures() {
    local net cell seed b
    for net in $nets; do
        for cell in "$out/$net"/float---w32a32-*/; do
            [ -f "${cell}float.json" ] || continue
            seed=${cell%/} seed=${seed##*-}
            local trained
            trained=$(sed -n 's/^train.epochs=//p' "${cell}settings")
            echo "$net float $seed $trained $(number float_top1 "${cell}float.json") $(number float_top5 "${cell}float.json")"
            for b in $bits; do
                local json
                json=$out/$(integer_cell "$net" "$b" "$seed")/qm.json
                [ ! -f "$json" ] || echo "$net $b $seed $trained $(number top1 "$json") $(number top5 "$json")"
            done
        done
    done
}

# network kind n mean deviation of top-1, of recall@5, of top-1's difference to the float network of the same
# seed, epochs; in the order in which they come.
summary() {
    figures | awk "$awk_functions"'
        $2 == "float" { reference[$1, $3] = $5 }
        {
            k = $1 " " $2
            if (!n[k]++) order[++keys] = k
            x = 100 * $5; y = 100 * $6; d = 100 * ($5 - reference[$1, $3])
            sx[k] += x; qx[k] += x * x; sy[k] += y; qy[k] += y * y; sd[k] += d; qd[k] += d * d
            epochs[k] = $4
        }
        END {
            for (i = 1; i <= keys; i++) {
                k = order[i]
                print k, n[k], sx[k] / n[k], deviation(n[k], sx[k], qx[k]), sy[k] / n[k], deviation(n[k], sy[k], qy[k]), sd[k] / n[k], deviation(n[k], sd[k], qd[k]), epochs[k]
            }
        }'
}

table() {
    summary | awk '
        function shown(mean, deviation, n) { return n > 1 ? sprintf("%.2f ± %.2f", mean, deviation) : sprintf("%.2f", mean) }
        BEGIN {
            print "| network | type | top-1 % | recall@5 % | minus float, points | seeds | epochs, float |"
            print "|---|---|---|---|---|---|---|"
        }
        { printf "| %s | %s | %s | %s | %s | %d | %s |\n", $1, $2 == "float" ? "float" : $2 " bits", shown($4, $5, $3), shown($6, $7, $3), $2 == "float" ? "" : shown($8, $9, $3), $3, $10 }'
    echo
    summary | orderings
}

if [ $only_table = no ]; then
    claim "$out"
    for seed in $(seq "$seeds"); do
        for net in $only; do
            describe "$net"
            train_float "$net" "$seed"
            for b in $bits; do train_integer "$net" "$b" "$seed"; done
            table >"$out/table.md"
        done
    done
fi
mkdir -p "$out"
table | tee "$out/table.md"
