#!/usr/bin/env bash
# The commands of the experiments on drawn data, with one epoch each: their tables, also before everything is done,
# and that nothing is done twice. Each check prints one line, `ok -` or `not ok -`.
set -u
export QAT_TOOLS=${QAT_BUILD_ROOT:?}/tools
bench=${QAT_SOURCE_ROOT:?}/bench
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

recipe() { # recipe <file> <kind of data> <[model] lines...>
    { printf '[data]\nkind = %s\ntrain_count = 160\ntest_count = 60\n[train]\nbatch = 16\nepochs = 1\n[model]\n' "$2"
        printf '%s\n' "${@:3}"; } >"$1"
}

trained() { # trained <what> <number>: trainings that the last command began
    if [ "$(grep -c ' training ' err.txt)" = "$2" ]; then ok "$1"; else
        not_ok "$1: $(grep -c ' training ' err.txt) trainings instead of $2"
    fi
}

# ---------------------------------------------------------------- bench/ablation.sh
recipe digits.ini digits 'filters = 4, 8' 'strides = 2'
ablation() { # ablation <options...>
    "$bench/ablation.sh" "$work/ablation" --recipe "$work/digits.ini" --bits 8,4 "$@"
}
check "ablation --table before anything is done" ablation --table
has "it says so" '^float top-1: missing; 0 of 4 cells done$' out.txt
has "a row of it" '^\| \*\*4\*\* \| missing \| missing \|$' out.txt
check "ablation" ablation
has "ablation: complete" '; 4 of 4 cells done$' out.txt
trained "the float run and four cells are trained" 5
cp out.txt first.txt
share() { # share <key> <file>
    sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"
}
expected=$(echo "$(share top1 ablation/uint8-w4a8-1/qm.json) $(share float_top1 ablation/float-1/float.json)" |
    awk '{ printf "%+.2f %%", 100 * ($1 - $2) / $2 }')
has "weights 4, activations 8: the relative change" "^\| \*\*4\*\* \| \\$expected \|" first.txt
heat_map=$QAT_BUILD_ROOT/bench/heat_map curves=$QAT_BUILD_ROOT/bench/curves
if grep -q 'without cairo' err.txt; then
    has "why there is no heat map" 'ablation.sh: .* has no heat map of top1$' err.txt
else
    if [ -s ablation/heat-top1.png ] && [ -s ablation/heat-top1.svg ]; then ok "its heat map"; else not_ok "its heat map"; fi
    check "a table with a gap as a heat map" "$heat_map" map a b c d < <(printf '8 8 1\n8 4 -2.5\n\n4 8 nan\n')
    has "has the gap" '<svg' map.svg
    check "curves" "$curves" curves a b c --log-x < <(printf '1 8 some\n2 -1.5 some\n\n4 8 others\n')
    has "are drawn" '<svg' curves.svg
fi
refuses "a heat map of nothing" 1 "no value was given" "$heat_map" map a b c d </dev/null
refuses "a field twice" 1 "line 2: row 8, column 8 has a value already" "$heat_map" map a b c d < <(printf '8 8 1\n8 8 2\n')
refuses "half a line" 1 "line 3: expected row, column" "$heat_map" map a b c d < <(printf '\n8 8 1\n8 4\n')
refuses "infinity" 1 "line 1: expected row, column" "$heat_map" map a b c d < <(echo 8 8 inf)
refuses "a curve at 0 of a logarithm" 1 "line 2: expected x, y (x > 0) and a name" "$curves" curves a b c --log-x < <(printf '1 8 some\n0 1 some\n')
check "an independent evaluation of that model" "$QAT_TOOLS/qat-eval" ablation/uint8-w4a8-1/model.qm --recipe digits.ini --json
same "gives the accuracy that the table is made of" out.txt ablation/uint8-w4a8-1/qm.json
rm -r ablation/uint8-w4a8-1
check "ablation --table without one cell" ablation --table
has "names what is missing" '^\| \*\*4\*\* \| missing \| [-+]' out.txt
rm ablation/uint8-w8a4-1/seconds # as if it had been stopped behind its last checkpoint
check "ablation goes on" ablation
trained "only what was missing is trained" 2
same "the same table" first.txt out.txt
refuses "another setting in the same folder" 2 "was begun with another recipe, other settings or another checkpoint" ablation --set train.lr=0.2
refuses "a wrong option" 2 "unknown option --bit" ablation --bit
cp ablation/float-1/last.ckpt kept.ckpt
"$QAT_TOOLS/qat-train" digits.ini --set train.seed=2 --out other >out.txt 2>&1 && cp other/last.ckpt ablation/float-1/last.ckpt
refuses "another checkpoint to begin with" 2 "was begun with another recipe, other settings or another checkpoint" ablation
cp kept.ckpt ablation/float-1/last.ckpt
sed -i '/^checkpoint /d' ablation/uint8-w4a4-1/settings # as an earlier version stored them
check "settings without the checkpoint" ablation
trained "are of the same run" 0
has "and get it" '^checkpoint [0-9]+ [0-9]+$' ablation/uint8-w4a4-1/settings
check "ablation of two seeds" ablation --seeds 2 --bits 8
has "has a deviation" '^\| \*\*8\*\* \| [-+][0-9.]+ ± [0-9.]+ % \|$' out.txt

# The paper's own table 4.7 shows what the paper reads from it; with weights and activations exchanged it does not.
findings() { # findings <order of the first two columns>: of table 4.7, weights down
    printf '%s\n' '8 -0.9 -0.3 -0.4 -1.3 -3.5' '7 -1.3 -0.5 -1.2 -1.0 -2.6' '6 -1.1 -1.2 -1.6 -1.6 -3.1' \
        '5 -3.1 -3.7 -3.4 -3.4 -4.8' '4 -11.4 -13.6 -10.8 -13.1 -14.0' |
        awk -v order="$1" '{ for (i = 2; i <= 6; i++) print order == "wa" ? $1 " " 10 - i : 10 - i " " $1, 1, 1, 1 + $i / 100 }' |
        awk -f "$bench/ablation_findings.awk"
}
check "findings of table 4.7" findings wa
if [ "$(grep -c ': found (' out.txt)" = 5 ]; then ok "all of them are found"; else not_ok "not all of them are found"; fi
has "sensitivity, the mean over ten pairs" 'activations.*: found \(-4.29\)$' out.txt
check "findings of the table exchanged" findings aw
has "activations are the more sensitive then" 'activations.*: not found \(\+4.29\)$' out.txt

# ---------------------------------------------------------------- bench/cifar10.sh
mkdir recipes
recipe recipes/cifar10_resnet20.ini shapes 'arch = resnet' 'depth = 8' 'width = 4'
recipe recipes/cifar10_mobilenet.ini shapes 'arch = mobilenet_v1' 'multiplier = 0.125'
cifar10() { # cifar10 <options...>
    "$bench/cifar10.sh" "$work/cifar10" --recipes "$work/recipes" --seeds 1 --epochs 1 --tune-epochs 1 "$@"
}
check "cifar10 --table before anything is done" cifar10 --table
has "a row of it" '^\| resnet20 \| qat \| int8 \| 8 / 8 \| missing \|  \| 0 \(1 missing\) \|$' out.txt
has "nothing is promised yet" '^open: resnet20 float at least 78 %$' out.txt
cifar10 >out.txt 2>err.txt # its status is that of promises about real pictures
trained "two float networks and ten quantized ones are trained" 12
if [ "$(grep -cE '^\| (resnet20|mobilenet) .*% \|.*\| 1 \|$' out.txt)" = 20 ] && ! grep -q missing out.txt; then
    ok "cifar10: 20 rows, nothing missing"
else
    not_ok "cifar10: $(cat out.txt err.txt)"
fi
grep '^|' out.txt >first.txt
cifar10 >out.txt 2>err.txt
trained "nothing is trained again" 0
grep '^|' out.txt >again.txt
same "the same table" first.txt again.txt

# ---------------------------------------------------------------- bench/few_bits/cifar10.sh
mkdir recipes/few_bits
few=('[distill]' 'weight = 0.5' '[quant]' 'enabled = yes' 'layout = int8' 'input_bits = 4' 'weight_bits = 4' 'ranges = tqt'
    '[quant.layer @first]' 'weight_bits = 8' 'input_bits = 8' '[quant.layer @last]' 'weight_bits = 8' 'input_bits = 8')
"$QAT_TOOLS/qat-export" --float cifar10/resnet20/float---w32a32-1/last.ckpt float.tflite >out.txt
recipe recipes/few_bits/resnet20.ini shapes 'arch = resnet' 'depth = 8' 'width = 4' "${few[@]}"
recipe recipes/few_bits/resnet20_2bits.ini shapes 'arch = resnet' 'depth = 8' 'width = 4' '[distill]' 'weight = 0.5' \
    '[quant]' 'enabled = yes' 'layout = int8' 'weight_ranges = dorefa' '[quant.layer @first]' 'weight_ranges = tqt' \
    'weight_bits = 8' 'input_bits = 8' '[quant.layer @last]' 'weight_ranges = tqt' 'weight_bits = 8' 'input_bits = 8'
recipe recipes/few_bits/mobilenet.ini shapes 'arch = mobilenet_v1' 'multiplier = 0.125' "${few[@]}"
recipe recipes/few_bits/resnet8.ini shapes "tflite = $work/float.tflite" "${few[@]}"
few_bits() { # few_bits <options...>
    "$bench/few_bits/cifar10.sh" "$work/few_bits" --recipes "$work/recipes" --seeds 1 --epochs 1 --tune-epochs 1 "$@"
}
check "few bits --table before anything is done" few_bits --table
has "a row of it" '^\| resnet20 \| qat \| 2 / 2 \| missing \|  \|  \|  \|  \| 0 \(1 missing\) \|$' out.txt
few_bits >out.txt 2>err.txt # its status is that of promises about real pictures
trained "five float networks and nine quantized ones are trained" 14
if [ "$(grep -cE '^\| (resnet20|mobilenet|resnet8) .*% \|.*\| 1 \|$' out.txt)" = 14 ] && ! grep -q missing out.txt; then
    ok "few bits: 14 rows, nothing missing"
else
    not_ok "few bits: $(cat out.txt err.txt)"
fi
has "simulated and integer accuracy" '^(kept|BROKEN): resnet20 qat 4 4: simulated and integer accuracy at most 0.2 points apart: [0-9.]+$' out.txt
grep '^|' out.txt >first.txt
few_bits >out.txt 2>err.txt
trained "no network of few bits is trained again" 0
grep '^|' out.txt >again.txt
same "the same table of few bits" first.txt again.txt
refuses "a setting more in the same folder" 2 "was begun with another recipe, other settings or another checkpoint" \
    few_bits --only mobilenet --set quant.range_rate=10
has "which is a setting of the quantized trainings" '^> quant.range_rate=10$' err.txt
few_bits --only "resnet20 qat 2 2" --table >out.txt 2>err.txt
if [ "$(grep -c '^|' out.txt)" = 3 ]; then ok "one row, below its heading"; else not_ok "one row: $(cat out.txt err.txt)"; fi
refuses "a row that is not there" 2 "--only resnet21: no row begins with that" few_bits --only resnet21 --table

# ---------------------------------------------------------------- bench/table_4_1.sh, results.sh
table_4_1() { # table_4_1 <options...>
    "$bench/table_4_1.sh" "$work/runs/table_4_1" --recipes "$work/recipes" --seeds 1 --epochs 1 --tune-epochs 1 --only resnet20 "$@"
}
check "table 4.1 --table before anything is done" table_4_1 --table
check "table 4.1 takes what is trained already" table_4_1 --take "$work/cifar10"
trained "it trains nothing" 0
top1=$(share float_top1 cifar10/resnet20/float---w32a32-1/float.json)
has "its float row" "^\| resnet20 \| float \| $(echo "$top1" | awk '{ printf "%.2f", 100 * $1 }') \| [0-9.]+ \|  \| 1 \| 1 \|$" out.txt
has "its integer row" '^\| resnet20 \| 8 bits \| [0-9.]+ \| [0-9.]+ \| [-0-9.]+ \| 1 \| 1 \|$' out.txt
has "what it shows" '^(found|not found): resnet20: integer within 2 points of float: [-+][0-9.]+$' out.txt
rm -r runs/table_4_1/resnet20/float---w32a32-1
refuses "what was trained otherwise is not taken" 2 "was begun with another recipe, other settings or another checkpoint" \
    table_4_1 --take "$work/cifar10" --epochs 2
mkdir -p runs/latency
for threads in 1 2; do echo "<svg>$threads</svg>" >"runs/latency/plot-log_ms_$threads,top1.svg"; done
cat >runs/latency/results.md <<END
| recipe | quant.enabled | model.multiplier | seeds | top1 [%] | float_top1 [%] | ms_1 |
|---|---|---|---|---|---|---|
| recipes/r.ini | no | 0.5 | 1 of 1 | missing | 50.00 | missing |
| recipes/r.ini | no | 1 | 1 of 1 | missing | 60.00 | missing |
| recipes/r.ini | yes | 0.5 | 1 of 1 | 50.25 | 50.50 | 0.1 |
| recipes/r.ini | yes | 1 | 1 of 1 | 59.00 | 60.25 | 0.1 |
END
mkdir tree && cp -r "$bench" tree && mkdir tree/docs && echo measured >tree/docs/results.md
refuses "results of nothing in place of a page" 2 "none: no table is there" tree/bench/results.sh none
has "which stays" '^measured$' tree/docs/results.md
check "results" "$bench/results.sh" "$work/runs" --docs "$work/docs"
has "compare integer networks with float ones" \
    'lower in 1 of 2 pairs, by at most 1.00 points; higher in 1, by at most 0.25; -0.38 points in the mean.$' docs/results.md
has "have two plots" '^!\[two threads\]\(figures/latency-2.svg\)$' docs/results.md
has "each of its own" '<svg>1<' docs/figures/latency-1.svg
has "have that table" '^\| resnet20 \| 8 bits \|' docs/results.md
has "list what was found" '^\* (found|not found): resnet20: integer within 2 points of float: [-+][0-9.]+$' docs/results.md
has "name what is missing" '^\*Not measured yet: `bench/table_4_3.sh OUT [-a-z0-9 ]*`.\*$' docs/results.md
has "count networks without their data" '^\| Inception v3 \| 23.83 M \(27.16 M\) \| 5713 M \|$' docs/results.md

# ---------------------------------------------------------------- bench/detection.sh
for set in cards bccd; do
    printf '[data]\nkind = scenes\nheight = 64\ntrain_count = 16\ntest_count = 8\none_class = yes\n[model]\narch = mobilenet_ssd
multiplier = 0.05\n[train]\nsteps = 3\nbatch = 8\neval_batch = 8\n[quant]\nquant_delay = 1\n' >"recipes/detect_$set.ini"
done
detection() { # detection <options...>
    "$bench/detection.sh" "$work/detection" --recipes "$work/recipes" --seeds 1 "$@"
}
check "detection --table before anything is done" detection --table
has "a row of it" '^\| cards \| 1 \| missing \|' out.txt
has "nothing is promised yet" '^open: bccd$' out.txt
detection >out.txt 2>err.txt # its status is that of promises about real pictures
trained "a float and a quantized detector of each set are trained" 4
has "a row of each" '^\| bccd \| 1 \| [-0-9.]+ % \([-0-9.]+ \.\. [-0-9.]+\) \| [-0-9.]+ % \|' out.txt
has "promises" '^(kept|BROKEN): cards integer AP50 within the interval of the float network: [01] of 1$' out.txt
grep '^|' out.txt >first.txt
detection >out.txt 2>err.txt
trained "no detector is trained again" 0
grep '^|' out.txt >again.txt
same "the same table" first.txt again.txt

# ---------------------------------------------------------------- bench/schemes.sh
recipe rgb.ini shapes 'filters = 4, 8' 'strides = 2'
schemes() { # schemes <options...>
    "$bench/schemes.sh" "$work/schemes" --recipe "$work/rgb.ini" --tune-epochs 1 "$@"
}
check "schemes --table before anything is done" schemes --table
has "a row of it" '^\| INQ, powers of two \| 5 / float \| missing \|  \|  \|$' out.txt
check "schemes" schemes
trained "a float network and eight from it are trained" 9
has "binary weights run" '^\| BWN, binary \| 1 / 8 \| [0-9.]+ % \| [-+][0-9.]+ \| runs: 0 of [0-9]+ bytes differ \|$' out.txt
has "their float activations do not" '^\| BWN, binary \| 1 / float \|.*\| refused: float activations ' out.txt
has "scales within a sum neither" '^\| FGQ, ternary by fours \| 2 / 8 \|.*\| refused: weights by fgq, ' out.txt

# ---------------------------------------------------------------- bench/faces_london.sh
# Six people: 29 years are within 5 of two of the three ages known to train on, and of one of the two to be tested on.
mkdir -p data/faces-london
printf '%s\n' file,split,person,expression,age,gender a,train,1,neutral,24,male b,train,2,smiling,34,female \
    c,train,3,neutral,45,male d,train,4,neutral,NA,male e,val,5,neutral,29,male f,val,6,smiling,40,male >data/faces-london/attributes.csv
echo '{"annotations": [{"bbox": [0, 0, 10, 10]}, {"bbox": [4, 0, 10, 10]}]}' >data/faces-london/instances_train.json
echo '{"annotations": [{"bbox": [2, 0, 10, 10]}, {"bbox": [9, 0, 10, 10]}]}' >data/faces-london/instances_val.json
london() { QAT_DATA=$work/data "$bench/faces_london.sh" "$work/london" --table; }
check "faces_london --table before anything is done" london
has "the age that is right most often" '^\| age within 5 years, % \| always 29: 50.00 \| missing' out.txt
has "its error" '^\| mean error of the age, years \| always 29: 5.50 \|' out.txt
has "equal scores" '^\| category AP of male and smiling, % \| 75.00 \|' out.txt
has "the mean box" '^\| faces, AP50, % \| the mean box: 50.00 \|' out.txt

# ---------------------------------------------------------------- bench/claims.sh
recipe claims.ini digits 'filters = 4, 8' 'strides = 2'
check "a network to ask about" "$QAT_TOOLS/qat-train" claims.ini --set quant.enabled=yes --out asked
check "claims" "$bench/claims.sh" --net "$work/asked/last.ckpt" --samples 40
has "a rounding" '^claim: ties up \(RSHL\) costs accuracy: not found: [0-9.]+ % instead of [0-9.]+ %; of 40 answers ' out.txt
has "clamps" '^claim: the activation.s clamp is subsumed .*: of 2 layers with one, 2 leave all of it' out.txt
check "of a float network" "$QAT_BUILD_ROOT/bench/claims" net ablation/float-1/last.ckpt --samples 40 --weight-bits 3
has "its weights' lowest code" '^weights without their lowest code: mean square error [0-9.]+ of their own' out.txt
check "a network of attributes" "$QAT_TOOLS/qat-train" claims.ini --set data.kind=faces --set data.height=32 \
    --set data.train_count=16 --set data.test_count=4 --set train.steps=1 --out attributed
refuses "attributes instead of classes" 1 "attributed/last.ckpt: no classifier of pictures" \
    "$QAT_BUILD_ROOT/bench/claims" net attributed/last.ckpt --samples 4
refuses "nine bits" 2 "usage: claims" "$QAT_BUILD_ROOT/bench/claims" net asked/last.ckpt --weight-bits 9

# ---------------------------------------------------------------- bench/latency.sh
check "latency of faces, where nothing is done yet" "$bench/latency.sh" "$work/faces" --epochs 3 --faces --table
has "its grid" '^\| recipes/faces_mobilenet.ini \| yes \| 1 \| 64 \| 0 of 1 ' out.txt

exit $failed
