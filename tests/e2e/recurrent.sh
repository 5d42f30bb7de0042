#!/usr/bin/env bash
# The keyword spotters with a GRU and an LSTM by the commands: trained on drawn words, exported, and run frame by frame.
# Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

# A sequence of so many frames of 12 values: -2, 2, 1, 0.5 in an order that repeats late.
frames() { # frames <N> <file>
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1, 1, 1, 1, 12), }" >"$2"
    printf "$(awk "BEGIN { for (i = 0; i < 12 * $1; i++) printf \"\\\\000\\\\000\\\\%s\", substr(\"000\\\\300000\\\\100200\\\\077000\\\\077\", 1 + 7 * (i * i % 7 % 4), 7) }")" >>"$2"
}
frames 24 whole.npy
frames 9 begin.npy

for cell in gru lstm; do
    recipe=$cell.ini
    sed "s/^test_count = .*/test_count = $(sanitized 200 2000)/" "$QAT_SOURCE_ROOT/recipes/keyword_$cell.ini" >"$recipe"
    check "$cell: training" "$tools/qat-train" "$recipe" --out $cell --set train.epochs=$(sanitized 2 6) --set data.train_count=$(sanitized 400 8000)
    check "$cell: export" "$tools/qat-export" $cell/last.ckpt $cell.qm
    has "$cell: the engine's integers are those of the exact evaluation" '^engine against exact evaluation: .* 0 differing$' out.txt
    has "$cell: one frame at a time gives what the whole sequence gives" '^frame by frame against whole sequences of 24 steps: .* 0 differing$' out.txt
    judged_alike $cell/last.ckpt $cell.qm "$recipe"
    has "$cell: it knows the words" "^quantized +top-1 $(sanitized '' 9)[0-9]" out.txt
    check "$cell: a sequence" "$tools/qat-run" --steps --input whole.npy --output whole-$cell.npy $cell.qm
    check "$cell: its first frames" "$tools/qat-run" --steps --input begin.npy --output begin-$cell.npy $cell.qm
    check "$cell: the same answers to them" cmp -n $((9 * 10)) -i 128 begin-$cell.npy whole-$cell.npy
    for ranges in ema tqt; do # weights have a reader in each frame
        check "$cell: trained on integers, $ranges" "$tools/qat-train" "$recipe" --out $cell-$ranges --set train.steps=4 \
            --set data.train_count=64 --set quant.forward=integer --set quant.quant_delay=0 --set quant.learn_delay=1 --set quant.ranges=$ranges
        check "$cell: export" "$tools/qat-export" $cell-$ranges/last.ckpt integers.qm --samples 20
        has "$cell: what was trained is what runs" '^training on integers against engine: [1-9][0-9]* bytes compared, 0 differing$' out.txt
    done
done
exit $failed
