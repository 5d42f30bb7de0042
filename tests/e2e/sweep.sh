#!/usr/bin/env bash
# qat-sweep on drawn digits, with a few steps each: its tables, that nothing is done twice, that it continues after a
# kill, and what it refuses. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

printf '[data]\nkind = digits\ntrain_count = 160\ntest_count = 60\n[train]\nbatch = 16\nsteps = 20\n[model]\nfilters = 4, 8\nstrides = 2\n[quant]\nenabled = yes\n' >small.ini
sed 's/enabled = yes/enabled = no/' small.ini >float.ini
sweep() { # sweep <options...>
    "$tools/qat-sweep" small.ini --verify 8 --threads 1 "$@"
}
grid="--set quant.weight_bits=8,4 --seeds 3 --baseline quant.weight_bits=8"
begun() { # begun <what> <step> <number>: commands that the last sweep began
    if [ "$(grep -c ": $2\$" err.txt)" = "$3" ]; then ok "$1"; else
        not_ok "$1: $(grep -c ": $2\$" err.txt) instead of $3"
    fi
}

# ---------------------------------------------------------------- what cannot be
refuses "no --out" 2 "--out DIR is missing" sweep
refuses "--set without '='" 2 "--set 'quant.weight_bits': expected section.key=value" sweep --out a --set quant.weight_bits
refuses "an empty list" 2 "quant.weight_bits: no values after '='" sweep --out a --set quant.weight_bits=
refuses "an empty value" 2 "quant.weight_bits: value 2 of the list is empty" sweep --out a --set quant.weight_bits=8,,4
refuses "a value twice" 2 "the value 8 is given twice" sweep --out a --set quant.weight_bits=8,8
refuses "a key twice" 2 "quant.weight_bits is given twice" sweep --out a --set quant.weight_bits=8 --set quant.weight_bits=4
refuses "open braces" 2 "braces do not match" sweep --out a --set 'model.filters={4,8'
refuses "an unknown key" 2 "unknown key quant.weight_bit" sweep --out a --set quant.weight_bit=8,4
refuses "a value beyond its range" 2 "quant.weight_bits" sweep --out a --set quant.weight_bits=8,99
refuses "the seed as a setting" 2 "--seeds sets this key" sweep --out a --set train.seed=1,2
refuses "a baseline that is no cell" 2 "--baseline 'quant.weight_bits=5' is not a cell" sweep --out a --set quant.weight_bits=8,4 --baseline quant.weight_bits=5
refuses "a baseline that is two" 2 "fits both" sweep --out a --set quant.weight_bits=8,4 --set train.lr=0.1,0.2 --baseline quant.weight_bits=8
refuses "a recipe that is not there" 1 "none.ini" "$tools/qat-sweep" none.ini --out a
[ ! -e a ] && ok "nothing was begun" || not_ok "nothing was begun"

# ---------------------------------------------------------------- a grid, killed and continued
# shellcheck disable=SC2086
check "--table before anything is done" sweep $grid --out whole --table
has "it says so" '^\| small.ini \| 4 \| 0 of 3 ' out.txt
# shellcheck disable=SC2086
check "a sweep" sweep $grid --out whole --jobs 2
begun "six trainings" train 6
has "a line of its table" '^\| small.ini \| 4 \| 3 of 3 \| [0-9.]+ ± [0-9.]+ \| [-+][0-9.]+ ± [0-9.]+ \| [-0-9.]+ \| [0-9.e-]+ \|' out.txt
has "the baseline's" '^\| small.ini \| 8 \| 3 of 3 \| [0-9.]+ ± [0-9.]+ \| baseline \|' out.txt
cp out.txt first.txt
same "results.md is what was printed" first.txt whole/results.md
has "a line of results.csv" '^small.ini,4,3,' whole/results.csv
[ "$(wc -l <whole/results.csv)" = 7 ] && ok "six of them" || not_ok "six of them: $(cat whole/results.csv)"
check "an independent evaluation of one model" "$tools/qat-eval" whole/small,quant.weight_bits=4/seed-2/model.qm --recipe small.ini --json
same "gives what the table is made of" out.txt whole/small,quant.weight_bits=4/seed-2/eval-qm.out
# shellcheck disable=SC2086
check "the same once more" sweep $grid --out whole
begun "nothing is trained again" train 0
same "the same table" first.txt out.txt
has "with the size of the file" "^small.ini,4,2,.*,$(stat -c %s whole/small,quant.weight_bits=4/seed-2/model.qm)(,|\$)" whole/results.csv
cp whole/results.csv results-before.csv
refuses "--table without the settings" 2 "none of these runs is in whole, and its results.csv has others: --table needs the recipes and --set" sweep --out whole --table
same "leaves the results alone" results-before.csv whole/results.csv
rm -r "whole/small,quant.weight_bits=4/seed-3"
# shellcheck disable=SC2086
check "without one run" sweep $grid --out whole --table
has "it is missing" '^\| small.ini \| 4 \| 2 of 3 ' out.txt
# shellcheck disable=SC2086
check "what no run has yet is left out" sweep $grid --out whole --table --columns top1,ms_1 --plot ms_1,top1
has "of the table" '^qat-sweep: --columns ms_1: no run has this column yet; the columns so far: n, ' err.txt
has "of the plots" '^qat-sweep: --plot ms_1,top1: not drawn yet: ms_1 is neither' err.txt
# shellcheck disable=SC2086
check "it is made again" sweep $grid --out whole
begun "and nothing else" train 1
same "with the same results" first.txt out.txt
refuses "another setting in the same folder" 1 "was started with other settings (" sweep --set quant.weight_bits=8,4 --set train.lr=0.2 --out whole
refuses "a figure that there is not" 2 "no such column; the columns are " sweep --set quant.weight_bits=8,4 --out whole --table --columns top2

long="--set quant.weight_bits=8,4 --set train.steps=400 --set train.checkpoint_every=40"
# shellcheck disable=SC2086
for signal in TERM KILL; do
    "$tools/qat-sweep" small.ini --threads 1 $long --out killed --jobs 2 >out.txt 2>err.txt &
    pid=$!
    for _ in $(seq 600); do
        [ -e killed/small,quant.weight_bits=4/seed-1/last.ckpt ] && break
        sleep 0.05
    done
    [ $signal = KILL ] || refuses "a second sweep in the same folder" 1 "another qat-sweep is working in killed" sweep $long --out killed
    kill -$signal $pid
    wait $pid 2>/dev/null
    flock killed/lock true # the trainings end a moment later
    [ -e killed/small,quant.weight_bits=4/seed-1/train.out ] && not_ok "SIG$signal came too late"
    [ -e killed/small,quant.weight_bits=4/seed-1/last.ckpt ] && ok "a training was interrupted by SIG$signal"
done
# shellcheck disable=SC2086
check "the killed sweep goes on" sweep $long --out killed --jobs 2
# shellcheck disable=SC2086
check "one in one go" sweep $long --out straight --jobs 2
for cell in 8 4; do
    same "the same checkpoint, weights $cell bits" {killed,straight}/small,quant.weight_bits=$cell/seed-1/last.ckpt
done

# ---------------------------------------------------------------- plots
refuses "a plot of one figure" 2 "expected [log:]X,Y" sweep --set quant.weight_bits=8,4 --out whole --table --plot top1
refuses "a plot by no setting" 2 "quant.weight_bit is not a setting" sweep --set quant.weight_bits=8,4 --out whole --table --plot top1,n/quant.weight_bit
refuses "a plot of cells with no setting" 2 "quant.bits is not a setting" sweep --set quant.weight_bits=8,4 --out whole --table --plot top1,n@quant.bits=8
refuses "a heat map of one setting" 2 "expected VALUE[:OTHER],KEY,KEY" sweep --set quant.weight_bits=8,4 --out whole --table --heat top1,quant.weight_bits
plots="--plot quant.weight_bits,top1+quant.weight_bits,float_top1 --plot train_seconds,top1@quant.weight_bits=4+train_seconds,float_top1@quant.weight_bits=8/recipe --plot log:train_seconds,top1/quant.weight_bits --heat top1:float_top1,quant.weight_bits,recipe"
# shellcheck disable=SC2086
if sweep $grid --out whole --table $plots >out.txt 2>err.txt; then
    for name in plot-quant.weight_bits,top1_quant.weight_bits,float_top1 \
        plot-train_seconds,top1@quant.weight_bits=4_train_seconds,float_top1@quant.weight_bits=8_recipe plot-log_train_seconds,top1_quant.weight_bits \
        heat-top1_float_top1,quant.weight_bits,recipe; do
        [ "$(head -c 4 "whole/$name.png" | tail -c 3)" = PNG ] && ok "$name.png" || not_ok "$name.png"
        has "$name.svg" '</svg>' "whole/$name.svg"
    done
    refuses "failures beside a heat map of them" 1 "2 of 4 runs failed" sweep --set train.lr=1e30,0.1 --set quant.weight_bits=8,4 \
        --out half --heat top1,recipe,quant.weight_bits --plot quant.weight_bits,top1@train.lr=1e30
    has "the plot has nothing yet" 'not drawn yet: nothing to plot yet$' err.txt
    check "one map of two has no value" sweep float.ini --set model.filters='{4,8},{4,4}' --set train.lr=0.1,0.05 --out maps \
        --heat top1,model.filters,train.lr
    if ls half/heat-*0.1*.png >/dev/null 2>&1; then ok "the map of the others"; else not_ok "the map of the others"; fi
    refuses "a plot of no figure" 2 "top2 is neither a column" sweep --set quant.weight_bits=8,4 --out whole --table --plot top2,top1
    refuses "a plot of what is no number" 2 "recipe = small.ini is not a number" sweep --set quant.weight_bits=8,4 --out whole --table --plot recipe,top1
else
    has "a build without cairo says so" 'this build cannot draw plots: it was made without cairo' err.txt
fi

# ---------------------------------------------------------------- float runs, two recipes, failures
check "two recipes, one float" sweep float.ini --out two --bench --seconds 0.01 --set 'model.filters={4,8}'
has "the float one has no model" '^\| float.ini \| 1 of 1 \| missing \|' out.txt
has "the model's latency" 'ms_1 \| ms_2 ' out.txt
has "the float network's, of a float run too" '^float.ini,.*[0-9.]+,[0-9.]+' two/results.csv
has "as figures of their own" 'float_ms_1.*float_ms_2' two/results.csv
has "braces hold one value" '"model.filters": "4,8"' two/results.json
sweep --set train.lr=1e30,0.1 --out failing >out.txt 2>err.txt
got=$?
[ $got = 1 ] && ok "a failed run: status 1" || not_ok "a failed run: status $got"
has "which one" "failing/small,train.lr=1e30/seed-1: train failed with status 1" err.txt
has "how many" "1 of 2 runs failed" err.txt
has "the others were done" '^\| small.ini \| 0.1 \| 1 of 1 ' out.txt
exit $failed
