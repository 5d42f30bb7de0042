# Sourced by the tests of C source: networks that the tests of the engine make, of every op, of every type and rounding, and
# random ones, in the folder models. chosen.txt lists a few of each kind; QAT_C_SOURCE_EVERY=1 takes all (some thousands),
# N every Nth. Expects $tests, the folder of the test programs, and $random, how many random networks there are. $makers
# (may be unset) are the programs that make the others.
all_makers="test_golden_ops test_infer test_infer_wide test_infer_moves test_infer_resize test_infer_imported
    test_infer_even test_infer_reduce test_state test_packing test_import_ops"
mkdir models
for program in ${makers:-$all_makers}; do
    QAT_KEEP_MODELS=$work/models "$tests/$program" >/dev/null 2>&1
done
QAT_PROPERTY_KEEP=$work/models "$tests/test_property" 20240607 "$random" >/dev/null 2>&1
rm -f models/*.tflite models/golden_* # import_* are the same

# ---------------------------------------------------------------- which networks
every=${QAT_C_SOURCE_EVERY:-0} # gcc 12 with -O1 makes wrong code of arg_max_45 and gather_45, if it may
ls models/*.qm | awk -v every="$every" '{
    kind = $0
    sub(/^models\//, "", kind); sub(/[0-9]*\.qm$/, "", kind)
    if (kind ~ /^[0-9-]*$/) kind = "random"
    n[kind]++
    if (every ? (n[kind] - 1) % every == 0 : n[kind] <= (kind == "random" ? 1000 : 1) || /(arg_max|gather)_45/) print
}' >chosen.txt
