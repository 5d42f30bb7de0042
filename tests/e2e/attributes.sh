#!/usr/bin/env bash
# Attributes and an age by the commands: they are trained, exported, evaluated as checkpoint and as .qm, and one
# picture is answered. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

cat >faces.ini <<'END'
[data]
kind = faces
height = 32
train_count = 32
test_count = 12
[model]
filters = 8, 12
[train]
steps = 6
batch = 8
eval_every = 3
optimizer = adam
lr = 0.003
[quant]
enabled = yes
quant_delay = 2
END
check "training" "$tools/qat-train" faces.ini --out run
has "a row's figure" '  test, category AP: float [0-9.]+ %' out.txt
has "its figures" '; 12 test samples; category AP: float [0-9.]+ %, on integers [0-9.]+ %; values right: float [0-9.]+ %, on integers' out.txt
has "log.csv's columns" ',float_category_ap,integer_category_ap,simulated_category_ap,float_within,integer_within,simulated_within,gradient_norm$' run/log.csv
has "log.csv's rows" '^6,([-0-9.e+]+,){6},([-0-9.e+]+,){2},[-0-9.e+]+$' run/log.csv
has "percents in them" '^6,([-0-9.e+]+,){4}([0-9.]+,){2},([0-9.]+,){2},[-0-9.e+]+$' run/log.csv
check "training without a value" "$tools/qat-train" faces.ini --out unvalued --set attributes.value=none
if grep -q "values right" out.txt; then not_ok "no value is said to be right"; else ok "no value is said to be right"; fi
has "the columns of values are empty" '^6,([-0-9.e+]+,){6},,,,[-0-9.e+]+$' unvalued/log.csv
check "the best checkpoint" test -s run/best.ckpt
check "export" "$tools/qat-export" run/last.ckpt a.qm --summary
has "the table of both networks" '^category AP +[0-9.]+ % +[0-9.]+ %$' out.txt
has "every byte of the eval graph is the engine's" 'bytes compared, 0 differing' out.txt
check "inspect the checkpoint" "$tools/qat-inspect" run/last.ckpt
has "its figure" '^float category AP ' out.txt
check "inspect the .qm" "$tools/qat-inspect" a.qm
has "its epilogue" '^epilogue, computed outside the engine: attributes of t[0-9]+,t[0-9]+: 24 attributes, and a value of 0 [+] 5 [*] the sum of 20$' out.txt

judged_alike run/last.ckpt a.qm faces.ini
check "as JSON" "$tools/qat-eval" a.qm --recipe faces.ini --json
has "its keys" '"category_ap": [0-9.e-]+, "within": [0-9.e-]+, "mean_error": [0-9.e+-]+' out.txt
device=$("$tools/qat-export" run/last.ckpt a.qm | sed -n 's/.*device arena \([0-9]*\) bytes$/\1/p')
if [ "${device:-0}" -gt 0 ]; then ok "a device needs $device bytes"; else not_ok "no arena: '$device'"; fi
check "its size" "$tools/qat-inspect" a.qm
has "the arena that the export told" "device arena $device bytes$" out.txt
check "its time" "$tools/qat-bench" a.qm --runs 1
has "the same arena" "device arena $device bytes " out.txt
refuses "attributes for a classifier's data" 1 "digits/test: samples have 1 channel, but the network takes 3" \
    "$tools/qat-eval" run/last.ckpt --data digits --samples 1
refuses "attributes on boxes" 1 "pictures with boxes, but the network finds none" \
    "$tools/qat-eval" a.qm --data scenes --samples 1
refuses "attributes on classes" 1 "samples with a class each, but the network answers attributes" \
    "$tools/qat-eval" run/last.ckpt --data shapes --samples 1

# ---------------------------------------------------------------- a table without a value
picture() { # picture <name> <value of all its bytes>: 32 x 32 pixels
    printf 'P6\n32 32\n255\n'
    head -c $((32 * 32 * 3)) /dev/zero | tr '\0' "$2"
}
mkdir images
for name in a b c d; do picture $name "$name" >images/$name.ppm; done
printf "%s\n" file,split,sex {a,c}.ppm,{train,val},male {b,d}.ppm,{train,val},female >table.csv
check "training on a table without a value" "$tools/qat-train" faces.ini --out plain --set data.kind=table \
    --set data.path=table.csv --set data.attributes=sex=male --set train.batch=4
check "its export" "$tools/qat-export" plain/last.ckpt plain.qm
check "inspect it" "$tools/qat-inspect" plain.qm
has "its epilogue" '^epilogue, computed outside the engine: attributes of t[0-9]+: 1 attribute$' out.txt
check "its answer" "$tools/qat-run" plain.qm images/a.ppm --json
has "has no value" '"attributes": \[\{"attribute": 0, "label": "sex: male", "score": [0-9.e-]+\}\]\}$' out.txt

{
    printf 'P6\n32 32\n255\n'
    head -c $((32 * 32 * 3)) /dev/zero
} >black.ppm
check "a picture's answer" "$tools/qat-run" a.qm black.ppm
has "its age" '^black.ppm:.* value -?[0-9.]+$' out.txt
has "its attributes, each with its score" '^black.ppm: ([a-z ]+ [01][.][0-9]{2}(, |; ))*value' out.txt
check "as JSON" "$tools/qat-run" a.qm black.ppm --json
has "all attributes" '\{"attribute": 23, "label": "pale skin", "score": [0-9.e-]+\}\], "value": [0-9.e+-]+\}$' out.txt
refuses "--top of attributes" 2 "a model with attributes answers each one separately" "$tools/qat-run" a.qm black.ppm --top 3

# ---------------------------------------------------------------- a value alone
printf "%s\n" file,split,age a.ppm,{train,val},10 b.ppm,{train,val},30 c.ppm,{train,val},NA d.ppm,train,55.5 >ages.csv
for value in ordered l2; do
    check "training on a value alone, $value" "$tools/qat-train" faces.ini --out alone --overwrite --set data.kind=table \
        --set data.path=ages.csv --set data.value=age --set attributes.value=$value --set train.batch=4
    has "what the data are" '4 training pictures, 3 test pictures, a value of 5$' out.txt
    has "its figures" '; mean error: float [0-9.]+, on integers [0-9.]+; values right: float [0-9.]+ %' out.txt
    has "log.csv's columns" ',float_mean_error,integer_mean_error,simulated_mean_error,float_within,' alone/log.csv
    check "its export" "$tools/qat-export" alone/last.ckpt alone.qm --summary
    has "it is certified" '^certified against the checkpoint: ' out.txt
    check "inspect it" "$tools/qat-inspect" alone.qm
    has "its epilogue" '^epilogue, computed outside the engine: value of t[0-9]+: 0 [+] 5 [*] the sum of (20|1)$' out.txt
    grep -v '^height\|_count\|^kind' faces.ini | sed 's/^\[data\]/&\nkind = table\npath = ages.csv\nvalue = age\nheight = 32/' >ages.ini
    judged_alike alone/last.ckpt alone.qm ages.ini
    check "its answer" "$tools/qat-run" alone.qm images/a.ppm --json
    has "a number" '^\{"input": "images/a.ppm", "value": -?[0-9.e+-]+\}$' out.txt
done
refuses "a value alone on classes" 1 "samples without a value alone, but the network answers one" \
    "$tools/qat-eval" alone/last.ckpt --data shapes --samples 1
refuses "nothing to learn" 2 "attributes.value = none, but" "$tools/qat-train" ages.ini --out none \
    --set attributes.value=none

exit $failed
