#!/usr/bin/env bash
# The commands of bench/budget on drawn data, with one epoch each: their tables, and that nothing is done twice. Each
# check prints one line, `ok -` or `not ok -`.
set -u
export QAT_TOOLS=${QAT_BUILD_ROOT:?}/tools
bench=${QAT_SOURCE_ROOT:?}/bench/budget
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

recipe() { # recipe <file> <[model] lines...>
    { printf '[data]\nkind = shapes\ntrain_count = 160\ntest_count = 60\n[train]\nbatch = 16\nepochs = 1\n[quant]\nlayout = int8\n[budget]\nsamples = 20\n[model]\n'
        printf '%s\n' "${@:2}"; } >"$1"
}
mkdir recipes
recipe recipes/cifar10_resnet20.ini 'arch = resnet' 'depth = 8' 'width = 4'
recipe recipes/cifar10_mobilenet.ini 'arch = mobilenet_v1' 'multiplier = 0.25' 'activation = relu6'
cifar10() { # cifar10 <options...>
    "$bench/cifar10.sh" "$work/runs" --seeds 1 --epochs 1 --tune-epochs 1 --recipes "$work/recipes" "$@"
}
check "the table before anything is done" cifar10 --table
has "says so" '^\| resnet20 \| same \| missing \|' out.txt
cifar10 >out.txt 2>err.txt
status=$?
if [ $status -le 1 ]; then ok "the experiment: exit status $status"; else not_ok "the experiment: exit status $status: $(tail -n 5 err.txt)"; fi
has "a row" '^\| resnet20 \| same \| [0-9.]+ % \| [0-9]+ \| 1 \|$' out.txt
has "of the other network" '^\| mobilenet \| smaller \| [0-9.]+ % \| [0-9]+ \| 1 \|$' out.txt
has "what is expected" '^(kept|BROKEN): mobilenet: at least 0.5 points above 4 bits everywhere' out.txt
for net in resnet20 mobilenet; do
    has "$net: the search is reproducible" "^kept: $net: the same search gives the same bytes\$" out.txt
    has "$net: an impossible budget" "^kept: $net: an impossible budget is refused: budget.flash = 1024: the least that is possible is " out.txt
    flash() { sed -n 's/^{"flash": \([0-9]*\),.*/\1/p' "$1"; }
    if [ "$(flash runs/$net/same-1-search/budget.json)" -le "$(flash runs/$net/cost-1/budget.json)" ]; then ok "$net: it fits"; else not_ok "$net: it does not fit"; fi
done
cp out.txt first.txt
cifar10 >out.txt 2>err.txt
same "the same table" first.txt out.txt
if grep -qE ' (training|searching) ' err.txt; then not_ok "nothing is done again: $(grep ing err.txt)"; else ok "nothing is done again"; fi
rm -r runs/resnet20/smaller-1/seconds runs/resnet20/smaller-1/qm.json
cifar10 >out.txt 2>err.txt
same "what is missing is made again" first.txt out.txt
refuses "another setting in the same folder" 2 "was begun with another recipe, other settings or another checkpoint" cifar10 --tune-epochs 2
refuses "a network that is none" 2 "--only resnet: no such network" cifar10 --only resnet
refuses "a folder without float networks" 2 "none/resnet20/float-w32a32-1 is not a finished training" cifar10 --floats "$work/none"
refuses "a wrong option" 2 "unknown option --seed" cifar10 --seed

check "predictions" "$bench/prediction.sh" "$work/recipes/cifar10_resnet20.ini" "$work/runs/resnet20/float-w32a32-1/last.ckpt" "$work/prediction" \
    quant.enabled=yes budget.samples=50 budget.probes=2
has "of one kind" '^measured: flash [0-9]+, predicted [-0-9.]+, simulated [-0-9.]+$' out.txt
has "and of the other, in a table" '^\| hessian \| [0-9]+ \| [-0-9.]+ \| [-0-9.]+ \| [-0-9.]+ \|$' out.txt
exit $failed
