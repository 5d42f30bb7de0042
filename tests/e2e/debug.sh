#!/usr/bin/env bash
# qat-debug on drawn digits: of a checkpoint, of its .qm, beside a dump; its files; what it refuses. (test_debug looks
# at what it finds.) Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6\nstrides = 2, 2
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "its export" "$tools/qat-export" run/last.ckpt a.qm --samples 4

check "qat-debug of a checkpoint" "$tools/qat-debug" run/last.ckpt --samples 20 --csv a.csv --json a.json
has "says what is compared" "^run/last.ckpt on 20 samples of digits/test, against its float network\$" out.txt
has "a row for each layer" "^logits +fully_connected " out.txt
has "CSV: a head" "^layer,op,rank,whole_snr_db," a.csv
has "CSV: a row" '^"conv1",conv2d,[0-9]+,[0-9.]+,' a.csv
check "JSON is read" python3 -c 'import json; a = json.load(open("a.json")); assert [l["layer"] for l in a["layers"]][1:] == ["conv1", "conv2", "pool", "logits"]; assert sorted(l["rank"] for l in a["layers"]) == [1, 2, 3, 4, 5]'
check "of a .qm" "$tools/qat-debug" a.qm --data digits --samples 20
has "against its own weights" "against the real numbers of its own weights\$" out.txt
check "of a .qm against its checkpoint" "$tools/qat-debug" a.qm --recipe small.ini --samples 20 --against run/last.ckpt --csv b.csv
same "which says the same as the checkpoint alone" a.csv b.csv
"$tools/qat-debug" run/last.ckpt --samples 20 --threads 2 --csv c.csv >out.txt
same "two threads give the same figures" a.csv c.csv
if "$tools/qat-inspect" a.qm --plot x >/dev/null 2>&1; then
    check "a chart" "$tools/qat-debug" run/last.ckpt --samples 4 --plot chart
    check "as PNG and SVG" test -s chart.png -a -s chart.svg
fi
check "after a calibration" "$tools/qat-debug" run/last.ckpt --samples 4 --ptq recipe --equalize --correct-bias
has "which is told" "^calibrated on digits/train" out.txt
check "a run with 2 bits" "$tools/qat-train" small.ini --out few --set quant.layout=int8 --set quant.weight_bits=2 --set quant.weight_ranges=lsq
check "which is not called broken" "$tools/qat-debug" few/last.ckpt --samples 20
has "but used to its roundings" "its weights are rounded, and training has adapted to that" out.txt
if grep -E "wrong|--correct-bias" out.txt; then not_ok "a fault"; else ok "no fault, and no advice that cannot be followed"; fi
check "a layer of 2 bits with 4" "$tools/qat-debug" few/last.ckpt --sensitivity few.csv --bits 4 --samples 20
has "is warned of" "warning: the weights of this checkpoint have at most 2 bits, so --bits 4 takes none from them" err.txt
check "which is calibrated" "$tools/qat-debug" few/last.ckpt --samples 20 --ptq recipe
has "then its biases can be corrected" "--correct-bias" out.txt
check "a file of fewer bits" "$tools/qat-export" run/last.ckpt coarse.qm --samples 4 --ptq recipe --set quant.weight_bits=3
check "beside a checkpoint of 8" "$tools/qat-debug" coarse.qm --data digits --samples 20 --against run/last.ckpt
has "has rounded weights" "its weights are rounded to 3 bits, the checkpoint's to 8" out.txt
if grep wrong out.txt; then not_ok "a fault"; else ok "which are not called wrong"; fi

# ---------------------------------------------------------------- one layer at a time
layers() { "$tools/qat-debug" run/last.ckpt --sensitivity "$@"; }
check "sensitivity" layers all.csv --bits 2
has "a table with the costliest layer first" "^none " out.txt
cp out.txt all.txt
has "its head" "^layer,top1_alone_in_float,top1_alone_at_2_bits\$" all.csv
rows=$(sed '1,2d; s/,.*//' all.csv | paste -sd ' ')
if [ "$rows" = "none conv1 conv2 logits" ]; then ok "a row for each layer: $rows"; else not_ok "rows: $rows"; fi
head -n 4 all.csv >part.csv
check "a table that is there is continued" layers part.csv --bits 2
same "with the same bytes" all.csv part.csv
same "and the same text" all.txt out.txt
layers killed.csv --bits 2 >out.txt 2>err.txt &
for _ in $(seq 2000); do [ -s killed.csv ] && break; sleep 0.001; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
check "after a kill" layers killed.csv --bits 2
same "the table has the same bytes" all.csv killed.csv
refuses "a table of other settings" 1 "is not a table of this checkpoint" layers all.csv --bits 3
sed 's/^conv1,/conv9,/' all.csv >other.csv
refuses "a table of other layers" 1 "is not a table of this checkpoint" layers other.csv --bits 2
head -c -3 all.csv >cut.csv
refuses "a row that is cut" 1 "is not a table of this checkpoint" layers cut.csv --bits 2
refuses "--bits without --sensitivity" 2 "needs --sensitivity" "$tools/qat-debug" run/last.ckpt --bits 4
refuses "sensitivity of a .qm" 2 "works with checkpoints only" "$tools/qat-debug" a.qm --data digits --sensitivity x.csv

mkdir empty
refuses "a folder without tensors" 1 "holds no tensor of the model" "$tools/qat-debug" a.qm --data digits --against empty
refuses "what is neither folder nor checkpoint" 1 "neither a folder nor a checkpoint" "$tools/qat-debug" a.qm --data digits --against small.ini
refuses "a .qm without data" 2 "a .qm needs --recipe or --data" "$tools/qat-debug" a.qm
refuses "a calibration of a .qm" 2 "works with checkpoints only" "$tools/qat-debug" a.qm --data digits --ptq recipe
head -c 2000 a.qm >cut.qm
refuses "a .qm that is cut" 1 "cut.qm" "$tools/qat-debug" cut.qm --data digits
refuses "another file" 1 "neither a checkpoint nor a .qm" "$tools/qat-debug" small.ini
refuses "another checkpoint's data" 1 "" "$tools/qat-debug" run/last.ckpt --data idx:none
exit $failed
