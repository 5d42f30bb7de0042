#!/usr/bin/env bash
# qat-train --budget on drawn digits: the choice and its files, kept layers, the size of the file, impossible budgets,
# threads, a kill, the training with the choice; a sweep over sizes. (test_budget_solve has the solver.) Each check
# prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6, 8\nstrides = 2, 2, 1
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\n[quant]\nenabled = yes\nema_decay = 0.9\n' >small.ini
check "a float run" "$tools/qat-train" small.ini --set quant.enabled=no --set train.epochs=12 --out float
budget() { # budget <folder> <options...>
    "$tools/qat-train" --budget small.ini --init float/last.ckpt --set budget.samples=100 --out "$@"
}
of_layer() { # of_layer <folder> <layer> <column>: of budget.csv
    awk -F, -v layer="$2" -v column="$3" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == layer { print $at[column] }' "$1/budget.csv"
}
is() { # is <what> <found> <wanted>
    if [ "$2" = "$3" ]; then ok "$1: $2"; else not_ok "$1: $2, not $3"; fi
}

# ---------------------------------------------------------------- what there is without a limit
check "8 bits fit a large budget" budget large --set budget.flash=1M
is "conv2 has 8 bits" "$(of_layer large conv2 weight_bits)" 8
check "its export" "$tools/qat-export" large/last.ckpt large.qm --samples 4
flash() { sed -n 's/^{"flash": \([0-9]*\),.*/\1/p' "$1/budget.json"; }
is "the file has the size that was computed" "$(flash large)" "$(stat -c %s large.qm)"
has "the curve begins with the least" "^flash,macs_bits,predicted_loss,simulated_loss\$" large/curve.csv
least=$(sed -n '2s/,.*//p' large/curve.csv)
most=$(sed -n '$s/,.*//p' large/curve.csv)
is "and ends with all bits" "$most" "$(flash large)"

# ---------------------------------------------------------------- a budget
half=$(((least + most) / 2))
check "half of what can be saved" budget half --set budget.flash=$half
if [ "$(flash half)" -le $half ]; then ok "the choice fits: $(flash half) of $half bytes"; else not_ok "too large: $(flash half) of $half"; fi
has "a section for a layer" "^\[quant.layer conv2\]\$" half/budget.ini
has "with what its bits cost" "^; weights: loss added with 8 bits 0, 4 bits " half/budget.ini
has "and the weights' bytes" "^; 216 weights in [0-9]+ bytes, 10584 multiply-adds" half/budget.ini
sums=$(awk -F, 'NR > 1 { bytes += $9; macs += $10 } END { print bytes, macs }' half/budget.csv)
macs_bits=$(sed 's/.*"macs_bits": \([0-9]*\),.*/\1/' half/budget.json)
is "the layers' sums are the totals" "$sums" "$(sed -n 's/^; chosen: flash .*(weights \([0-9]*\), .*/\1/p' half/budget.ini) $macs_bits"
check "its export" "$tools/qat-export" half/last.ckpt half.qm --samples 4
is "the packed file has the size that was computed" "$(flash half)" "$(stat -c %s half.qm)"
check "budget.ini alone" "$tools/qat-train" half/budget.ini --out again
same "gives the same checkpoint" half/last.ckpt again/last.ckpt
if grep -q "no effect" err.txt; then not_ok "without a warning: $(cat err.txt)"; else ok "without a warning"; fi

check "two threads" budget two --set budget.flash=$half --threads 2
for file in budget.ini budget.csv curve.csv budget.json sensitivity.csv last.ckpt; do same "the same $file" half/$file two/$file; done
check "another seed of the training" budget seed --set budget.flash=$half --set train.seed=7 --dry-run
same "the same choice" half/budget.csv seed/budget.csv
[ -e seed/last.ckpt ] && not_ok "--dry-run trains nothing" || ok "--dry-run trains nothing"

# ---------------------------------------------------------------- kept layers, activations, the Hessian
check "kept layers" budget kept --set "budget.flash=$most" --set 'budget.keep=@first,logits' --set 'quant.layer conv2.weight_bits=5' --dry-run
is "the first layer" "$(of_layer kept conv1 weight_bits) $(of_layer kept conv1 weights_kept)" "8 1"
is "one that [quant.layer] gives bits" "$(of_layer kept conv2 weight_bits) $(of_layer kept conv2 weights_kept)" "5 1"
is "another one" "$(of_layer kept conv3 weights_kept)" 0
# a layer of a scheme, which has bits of its own
for scheme in $(sanitized 'dorefa:3 tqt_full:2 bwn:2' 'dorefa:7 dorefa:4 dorefa:3 apot:4 inq:4 tqt_full:2 lsq_full:2 twn:2 bwn:2'); do
    own=${scheme#*:} asked=${scheme#*:}
    case $scheme in bwn* | twn*) asked=8 ;; esac # they have 2, whatever is asked for
    check "conv2 by ${scheme%:*}" budget scheme --overwrite --set budget.flash=1M --set budget.keep=conv2 --set train.lr=0.001 \
        --set "quant.layer conv2.weight_ranges=${scheme%:*}" --set "quant.layer conv2.weight_bits=$asked" \
        --set quant.quant_delay=0 --set quant.bn_freeze_delay=0
    is "it has $own bits" "$(of_layer scheme conv2 weight_bits)" "$own"
    check "its export" "$tools/qat-export" scheme/last.ckpt scheme.qm --samples 4
    is "the file has the size that was computed" "$(flash scheme)" "$(stat -c %s scheme.qm)"
done
check "another loss" budget smooth --set budget.flash=1M --set train.label_smoothing=0.3 --set budget.table=smooth.csv --dry-run
refuses "its table with the loss of the recipe" 1 "smooth.csv was measured with other" budget unsmooth --set budget.flash=1M --set budget.table=smooth.csv --dry-run
check "what does not change it" budget smoother --set budget.flash=1M --set train.label_smoothing=0.3 --set budget.table=smooth.csv \
    --set quant.bn_freeze_delay=5 --set train.lr=0.03 --dry-run
check "activations, too" budget both --set budget.macs_bits=1M --set budget.activation_bits=8,4,2 --set budget.weight_bits=8,4 --dry-run
if [ "$(sed 's/.*"macs_bits": \([0-9]*\),.*/\1/' both/budget.json)" -le 1000000 ]; then ok "macs_bits fits"; else not_ok "too large: $(cat both/budget.json)"; fi
has "an output with other bits" "^activation_bits = [42]\$" both/budget.ini
has "a layer without weights, too" "^; output: loss added with 8 bits 0, 4 bits " both/budget.ini
check "by the Hessian" budget traces --set budget.flash=$half --set budget.sensitivity=hessian --set budget.probes=3 --dry-run
has "which has traces" "^conv2,trace,2,[-0-9.e]+\$" traces/sensitivity.csv
check "and with learned ranges" budget learned --set budget.flash=$half --set quant.ranges=lsq --set train.epochs=1
has "bits of a layer" "^weight_bits = " learned/budget.ini
full=(--set budget.flash=$half --set quant.ranges=tqt --set quant.weight_ranges=tqt_full --set train.epochs=1)
check "with the lowest code" budget full "${full[@]}"
check "its export" "$tools/qat-export" full/last.ckpt full.qm --samples 4
if [ "$(stat -c %s full.qm)" -le $half ]; then ok "the file fits: $(stat -c %s full.qm) of $half bytes"; else not_ok "too large: $(stat -c %s full.qm) of $half"; fi
if [ "$(sanitized no yes)" = yes ]; then
    check "without it" budget three "${full[@]/tqt_full/tqt}"
    lost() { sed -n "s/^conv2,[a-z]*,$2,\([-0-9.e+]*\)\$/\1/p" "$1/sensitivity.csv" | head -n 1; }
    if [ -n "$(lost full 2)" ] && [ -n "$(lost three 2)" ] && [ "$(lost full 2)" != "$(lost three 2)" ]; then ok "2 bits lose something else: $(lost full 2), $(lost three 2)"; else not_ok "2 bits lose the same: $(lost full 2)"; fi
fi

# ---------------------------------------------------------------- concatenated outputs of different bits
printf '[data]\nkind = digits\ntrain_count = 200\ntest_count = 40\n[model]\narch = layers\n[train]\nepochs = 1\nbatch = 20\n[quant]\nenabled = yes\nlayout = int8
[layer.a]\nop = conv2d\nfilters = 4\nkernel = 3\nstride = 4\nbias = yes\nactivation = relu
[layer.b]\nop = conv2d\nfilters = 4\nkernel = 3\nstride = 4\nbias = yes\nactivation = relu\ninput = input
[layer.join]\nop = concat\ninput = a, b\n[layer.logits]\nop = fully_connected\nunits = 10\nbias = yes\n' >join.ini
joined() { # joined <folder> <options...>
    "$tools/qat-train" --budget join.ini --set budget.samples=50 --set budget.activation_bits=8,4 --set budget.weight_bits=8 --out "$@"
}
check "outputs of different bits" joined join --set budget.flash=1M --set budget.macs_bits=400K
check "their export" "$tools/qat-export" join/last.ckpt join.qm --samples 4
is "the file has the size that was computed" "$(flash join)" "$(stat -c %s join.qm)"
# one branch is kept: few bits of the other one make the file larger
one_kept() { # one_kept <folder> <options...>
    timeout 300 "$tools/qat-train" --budget join.ini --init join/float/last.ckpt --set budget.samples=50 --set budget.activation_bits=8,4 --set budget.weight_bits=8,4 --set budget.keep=a --out "$@"
}
check "one branch is kept" one_kept wide --set budget.flash=1M --dry-run
is "and nothing needs few bits" "$(of_layer wide b activation_bits)" 8
wide_least=$(sed -n '2s/,.*//p' wide/curve.csv)
check "the least is one without further ops" one_kept exact --set budget.flash=$wide_least --dry-run
is "and has that size" "$(flash exact)" $wide_least
refuses "too few macs_bits" 2 "the least that is possible is" one_kept none --set budget.macs_bits=1
least_macs=$(sed 's/.*the least that is possible is \([0-9]*\),.*/\1/' err.txt)
few() { # few <folder> <options...>: with the least macs_bits
    one_kept "$1" --set budget.macs_bits=$least_macs "${@:2}"
}
refuses "few bits, and too little flash" 2 ", with bits a 8 (kept), b 4, b's output 4, join's output 4, logits 4" few none --set budget.flash=1K
few_least=$(sed 's/.*the least that is possible is \([0-9]*\) bytes,.*/\1/' err.txt)
if [ "$few_least" -gt "$wide_least" ]; then ok "few bits take more: $few_least, not $wide_least bytes"; else not_ok "no more: $few_least, $wide_least bytes"; fi
check "few bits, and room" few narrow --set budget.flash=1M --dry-run
check "few bits, and no byte to spare" few spare --set budget.flash=$few_least
is "the other branch has few, too" "$(of_layer spare a activation_bits) $(of_layer spare b activation_bits)" "8 4"
check "their export" "$tools/qat-export" spare/last.ckpt spare.qm --samples 4
is "the file has the least size" "$(flash spare) $(stat -c %s spare.qm)" "$few_least $few_least"
refuses "a byte less" 2 "the least that is possible is $few_least bytes" few none --set budget.flash=$((few_least - 1))

# ---------------------------------------------------------------- RAM: in row bands, and packed
printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 40\n[model]\narch = resnet\ndepth = 14\nwidth = 4
[train]\nepochs = 1\nbatch = 20\n[quant]\nenabled = yes\nlayout = int8
[quant.layer stage1/block2/*]\nactivation_bits = 2\n' >ram.ini
check "a float run" "$tools/qat-train" ram.ini --set quant.enabled=no --set train.epochs=6 --out ram-float
within() { # within <folder> <bytes of RAM> <options...>
    "$tools/qat-train" --budget ram.ini --init ram-float/last.ckpt --set budget.samples=50 --set budget.weight_bits=8 \
        --set budget.activation_bits=8,4,2 --set 'budget.keep=stage2*,stage3*,logits' --set "budget.ram=$2" --out "$1" "${@:3}"
}
ram() { sed -n 's/.*"ram": \([0-9]*\),.*/\1/p' "$1/budget.json"; }
layers=(conv1 stage1/block1/conv1 stage1/block1/conv2 stage1/block1/add)
outputs() { for l in "${layers[@]}"; do of_layer "$1" "$l" activation_bits; done | paste -sd' '; }
check "little RAM" within packed 7K
packed=$(ram packed)
check "its export" "$tools/qat-export" packed/last.ckpt packed.qm --samples 4 --ram 7K --json
has "packs tensors, and needs what was promised" "\"ram\": $packed, \"ram_before\": [0-9]*, .*\"packed_tensors\": [1-9]" out.txt
whole() { sed 's/.*"flash": \([0-9]*\),.*"flash_for_ram": \([0-9]*\),.*/\1 \2/' "$1/budget.json" | awk '{ print $1 + $2 }'; }
each_choice() { # of those that fit: the loss that is predicted, the bits, the bytes of the file
    local bits b loss i sets
    for bits in {8,4,2}\ {8,4,2}\ {8,4,2}\ {8,4,2}; do
        sets=() loss=0 i=0
        for b in $bits; do
            loss="$loss + $(of_layer packed "${layers[i]}" "activation_loss_$b")"
            sets+=(--set "quant.layer ${layers[i]}.activation_bits=$b")
            i=$((i + 1))
        done
        within one 7K "${sets[@]}" --set 'budget.keep=*' --dry-run --overwrite >one.txt 2>&1 || continue
        awk -v bits="$bits" -v bytes="$(whole one)" "BEGIN { printf \"%.9f %s %d\\n\", $loss, bits, bytes }"
    done
}
if [ "$(sanitized no yes)" = yes ]; then
    check "much RAM" within much 1M --dry-run
    much=$(ram much)
    is "needs few bits nowhere" "$(outputs much)" "8 8 8 8"
    check "row bands are enough" within bands $((much * 3 / 4)) --dry-run
    is "for 8 bits" "$(outputs bands)" "8 8 8 8"
    has "how to export" "^; RAM: $(ram bands) bytes with qat-export --ram $((much * 3 / 4)), otherwise $much; that adds about [1-9][0-9]* bytes" bands/budget.ini
    refuses "too little RAM" 2 "budget.ram = 64: the network needs at least " within none 64
    least_ram=$(sed 's/.*needs at least \([0-9]*\) bytes.*/\1/' err.txt)
    refuses "a byte less" 2 "the network needs at least $least_ram bytes" within none $((least_ram - 1))
    check "exactly so much" within exactly "$least_ram" --dry-run
    is "needs it all" "$(ram exactly)" "$least_ram"
    adds=$(sed 's/.*"flash_for_ram": \([0-9]*\),.*/\1/' packed/budget.json)
    whole=$(($(flash packed) + adds))
    check "little RAM, and as much flash as it takes" within both-limits 7K --set budget.flash=$whole --dry-run
    same "has the same bits" packed/budget.csv both-limits/budget.csv
    check "a byte less" within less 7K --set budget.flash=$((whole - 1)) --set budget.weight_bits=8,7 --dry-run
    adds=$(sed 's/.*"flash_for_ram": \([0-9]*\),.*/\1/' less/budget.json)
    if [ $(($(flash less) + adds)) -lt $whole ]; then ok "keeps within it: $(flash less) + $adds bytes"; else
        not_ok "takes $(flash less) + $adds of $((whole - 1)) bytes"
    fi
    refuses "too little flash for it" 2 "the least that is possible is" within none 7K --set budget.flash=1K
    each_choice >each.txt
    if [ "$(wc -l <each.txt)" -gt 10 ]; then ok "$(wc -l <each.txt) choices fit"; else not_ok "few choices fit: $(cat each.txt)"; fi
    is "the best of them was chosen" "$(outputs packed)" "$(LC_ALL=C sort -n each.txt | head -n 1 | cut -d' ' -f2-5)"
    sizes=$(cut -d' ' -f6 each.txt | sort -n)
    for line in 2 $((($(wc -l <each.txt) + 1) / 2)) $(($(wc -l <each.txt) - 1)); do
        size=$(sed -n "${line}p" <<<"$sizes")
        check "little RAM, and $size bytes of flash" within limited 7K --set "budget.flash=$size" --dry-run --overwrite
        best=$(awk -v size="$size" '$6 <= size' each.txt | LC_ALL=C sort -n | head -n 1)
        predicted=$(sed 's/.*"predicted_loss": \([0-9.e-]*\),.*/\1/' limited/budget.json)
        if awk "BEGIN { exit !($predicted <= ${best%% *} + 1e-6) }" && [ "$(whole limited)" -le "$size" ]; then
            ok "the best that fits: it loses $predicted, ${best%% *} of $(awk -v size="$size" '$6 <= size' each.txt | wc -l) choices"
        else
            not_ok "it loses $predicted in $(whole limited) bytes; the best has $best"
        fi
    done
    has "the curve is there, too" '^[0-9]+,' limited/curve.csv
fi

# ---------------------------------------------------------------- a table that several searches share
alone_and_shared() { # alone_and_shared <folder> <options...>: the same, with a table of its own and a shared one
    check "$1: a table of its own" budget "$1" --set budget.flash=1M "${@:2}" --dry-run
    check "$1: the shared table" budget "$1-shared" --set budget.flash=1M --set budget.table=between.csv "${@:2}" --dry-run
    for file in curve.csv budget.json; do same "$1: the same $file" $1/$file $1-shared/$file; done
}
alone_and_shared keep-1 --set budget.keep=conv1 --set budget.weight_bits=8,4
if [ "$(sanitized no yes)" = yes ]; then
    alone_and_shared keep-3 --set budget.keep=conv3 --set budget.weight_bits=8,4
    alone_and_shared weights --set budget.keep=logits --set budget.weight_bits=8,4
    some=(--set budget.keep=logits --set budget.weight_bits=8 --set budget.activation_bits=8,4)
    refuses "outputs of too few bits" 2 "the least that is possible is" budget none --set budget.macs_bits=1 "${some[@]}"
    alone_and_shared outputs "${some[@]}" --set "budget.macs_bits=$(sed 's/.*the least that is possible is \([0-9]*\),.*/\1/' err.txt)"
fi

cp between.csv before.csv
check "--overwrite is for the folder" budget keep-1-shared --set budget.flash=1M --set budget.table=between.csv --set budget.keep=conv1 \
    --set budget.weight_bits=8,4 --dry-run --overwrite
same "not for the shared table" before.csv between.csv

# ---------------------------------------------------------------- folders with long names
long_folder() { # long_folder <characters>: its name
    local name=$work/$(printf 'd%.0s' $(seq 200))/$(printf 'e%.0s' $(seq 200))/$(printf 'f%.0s' $(seq 200))/$(printf 'g%.0s' $(seq 200))/
    printf '%s%s\n' "$name" "$(printf 'h%.0s' $(seq $(($1 - ${#name}))))"
}
long=$(long_folder 1000)
check "a folder of 1000 characters" budget "$long" --set budget.flash=1M --dry-run
for file in budget.ini budget.csv curve.csv budget.json sensitivity.csv; do check "has $file" test -s "$long/$file"; done
refuses "a folder of 1008 characters" 2 "... is too long" budget "$(long_folder 1008)" --set budget.flash=1M --set budget.table=between.csv --dry-run
check "nothing was written" test ! -e "$(long_folder 1008)"

# ---------------------------------------------------------------- what cannot be
refuses "too little flash" 2 "budget.flash = 1024: the least that is possible is $least bytes, with bits conv1 2, conv2 2, conv3 2, logits 2" budget none --set budget.flash=1K
refuses "too little with a kept layer" 2 "conv3 8 (kept)" budget none --set budget.flash=1K --set budget.keep=conv3
refuses "too little RAM" 2 "budget.ram = 64: the network needs at least " budget none --set budget.ram=64
refuses "too few macs_bits" 2 "budget.macs_bits = 1000: the least that is possible is " budget none --set budget.macs_bits=1K
refuses "no budget" 2 "there is no budget" budget none
refuses "a unit that is none" 2 "budget.flash = 8G: expected bytes in" budget none --set budget.flash=8G
refuses "bits twice" 2 "budget.weight_bits = 4,8,4: 4 is given twice" budget none --set budget.weight_bits=4,8,4
refuses "bits that there are not" 2 "budget.weight_bits = 1,8" budget none --set budget.weight_bits=1,8
refuses "a pattern that matches nothing" 2 "budget.keep: no layer matches conv9" budget none --set budget.flash=8K --set budget.keep=conv9
printf '\n[budget]\nflash = 1K\n' | cat small.ini - >line.ini
refuses "the line is named" 2 "line.ini:17: budget.flash = 1024" "$tools/qat-train" --budget line.ini --init float/last.ckpt --out none
refuses "a scheme of its own" 1 "the bits of weight_ranges = twn cannot be searched" budget none --set budget.flash=1M --set quant.weight_ranges=twn
refuses "a float network" 2 "a float network has no bits" budget none --set budget.flash=1M --set quant.enabled=no
[ -e none ] && not_ok "nothing was written" || ok "nothing was written"
check "a budget without --budget" "$tools/qat-train" line.ini --dry-run
has "is told of" "line.ini: budget.flash has no effect without --budget" err.txt
refuses "a folder with a run" 1 "half/last.ckpt already exists" budget half --set budget.flash=$half
refuses "also for a dry run" 1 "half/last.ckpt already exists" budget half --set budget.flash=1M --dry-run
refuses "a run continued with another choice" 1 "half/budget.ini: the run there was begun with another choice" budget half --set budget.flash=1M --resume
for file in budget.ini budget.csv curve.csv budget.json last.ckpt; do same "$file stays" half/$file two/$file; done
sed 's/^conv1,/conv9;/' half/sensitivity.csv | sed '1s/samples 100/samples 99/' >other.csv
refuses "a table of something else" 1 "other.csv was measured with other weights" budget none --set budget.flash=1M --set budget.table=other.csv --dry-run
head -c -3 half/sensitivity.csv >cut.csv
refuses "a table that is cut" 1 "cut.csv was measured with other weights" budget none --set budget.flash=1M --set budget.table=cut.csv --dry-run
truncate -s 67108865 big.csv # BUDGET_TABLE_BYTES, and one
refuses "a table that is too large" 1 "big.csv" budget none --set budget.flash=1M --set budget.table=big.csv --dry-run
rm -rf none big.csv

# ---------------------------------------------------------------- killed and continued
"$tools/qat-train" --budget small.ini --init float/last.ckpt --set budget.samples=100 --set budget.flash=$half --out killed >out.txt 2>err.txt &
for _ in $(seq 2000); do [ -s killed/sensitivity.csv ] && break; sleep 0.001; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
if [ ! -e killed/budget.ini ]; then ok "killed with $(wc -l <killed/sensitivity.csv) lines"; else echo "SKIP a kill during the search: it was over"; fi
check "after a kill" budget killed --set budget.flash=$half
for file in budget.ini budget.csv curve.csv sensitivity.csv last.ckpt; do same "the same $file" half/$file killed/$file; done
"$tools/qat-train" --budget small.ini --init float/last.ckpt --set budget.samples=100 --set budget.flash=$half --set train.epochs=200 \
    --set train.checkpoint_every=1 --out late >out.txt 2>err.txt &
for _ in $(seq 4000); do [ -s late/last.ckpt ] && break; sleep 0.005; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
check "after a kill in training" budget late --set budget.flash=$half --set train.epochs=200 --set train.checkpoint_every=1 --resume
has "it is continued" "^continuing at step [1-9]" out.txt

# ---------------------------------------------------------------- without weights to begin with
alone() { # alone <options...>: a budget without a checkpoint
    "$tools/qat-train" --budget small.ini --set budget.samples=50 --out none "$@"
}
refuses "too little flash, before a float training" 2 "the least that is possible is $least bytes" alone --set budget.flash=1K
refuses "too little RAM" 2 "the network needs at least " alone --set budget.ram=64
refuses "a pattern that matches nothing" 2 "budget.keep: no layer matches conv9" alone --set budget.flash=1M --set budget.keep=conv9
refuses "in a dry run" 2 "the least that is possible is $least bytes" alone --set budget.flash=1K --dry-run
refuses "a dry run has nothing to measure" 2 "name a checkpoint by train.init" alone --set budget.flash=1M --dry-run
[ -e none ] && not_ok "nothing was written" || ok "nothing was written"
check "the float network comes first" "$tools/qat-train" --budget small.ini --set budget.samples=50 --set budget.flash=$half --out whole
has "in a folder of its own" "^no train.init: the float network is trained first, in whole/float\$" out.txt
has "without quantization" "^step,.*,float_top1," whole/float/log.csv
has "and is where the choice begins" "^init = whole/float/last.ckpt\$" whole/budget.ini

# ---------------------------------------------------------------- a sweep over sizes
sweep() {
    "$tools/qat-sweep" small.ini --out sizes --set train.init=float/last.ckpt --set budget.samples=100 --set budget.table=shared.csv \
        --set "budget.flash=$least,$half,$most" --verify 4 --threads 1 "$@"
}
check "predictions only" sweep --predict --columns flash,predicted_loss,simulated_loss
has "the least" "^\| small.ini \| $least \| 1 of 1 \| $least " out.txt
[ -e "sizes/small,budget.flash=$most/seed-1/last.ckpt" ] && not_ok "nothing is trained" || ok "nothing is trained"
check "the sweep" sweep --columns flash,top1,predicted_loss
has "a line of its table" "^\| small.ini \| $most \| 1 of 1 \| $most \| [0-9.]+ " out.txt
if "$tools/qat-inspect" half.qm --plot x >/dev/null 2>&1; then
    check "a curve" sweep --table --plot flash,top1 --plot flash,predicted_loss+flash,simulated_loss
    check "as a picture" test -s sizes/plot-flash,top1.svg
    ls sizes >files.txt
fi
refuses "predictions without a budget" 2 "has no budget" "$tools/qat-sweep" small.ini --out other --predict
exit $failed
