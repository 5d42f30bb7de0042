#!/usr/bin/env bash
# The limits of docs/security.md. Each row of its table names a constant of the source and the test
# that goes beyond it. Here the page's figure is compared with the source, and the test is looked for.
# The tests that are commands are below: the message must have the source's figure.
set -u
source=${QAT_SOURCE_ROOT:?}
tools=${QAT_BUILD_ROOT:?}/tools
page=$source/docs/security.md
. "$source/tests/common/checks.sh"

constant() { # constant <name> <file>: its value in the source
    text=$(grep -oE "(\b$1 = |define $1 +)[^,;}]*" "$source/$2" | head -n 1 |
        sed -E "s/^(.*$1 = |define $1 +)//; s@/\*.*@@; s/INT32_MAX/2147483647/; s/U?INT64_C//; s/\((zip_uint64_t|size_t|uint64_t)\)//g")
    [ -n "$text" ] && echo $((text))
}

# ---------------------------------------------------------------- the table
rows=0
while IFS='|' read -r _ what most where test _; do
    what=$(tr -d '`' <<<"$what" | sed 's/^ *//; s/ *$//')
    name=$(grep -oE '`[A-Z0-9_]+`' <<<"$where" | tr -d '`')
    file=$(grep -oE '`[a-z]+/[^`]*`' <<<"$where" | tr -d '`')
    test=$(grep -oE '`[^`]*`' <<<"$test" | tr -d '`')
    said=$(sed -E 's/^ *([0-9,]+).*/\1/; s/,//g' <<<"$most")
    value=$(constant "$name" "$file")
    rows=$((rows + 1))
    if [ "$said" != "$value" ]; then
        not_ok "$what: the page says '$said', $name in $file is '$value'"
    elif ! grep -qw "$name" "$source/tests/$test"; then
        not_ok "$what: no $name in tests/$test"
    else
        echo "$name $value" >>limits.txt
        ok "$what: $said, tested by $test"
    fi
done < <(sed -n '/^## Limits/,/^## /p' "$page" | grep -E '^\| .*`[A-Z0-9_]+`')
joined=$(sed -n '/^## Limits/,$p' "$page" | awk '/^\|/ { n++; next } n { exit } END { print n - 2 }') # without its head
[ $rows -gt 20 ] && [ "$rows" = "$joined" ] || not_ok "$rows rows, of which $joined follow each other"

value_of() { # value_of <name>: as the table has it
    sed -n "s/^$1 //p" limits.txt | head -n 1
}

beyond() { # beyond <name> <what> <command...>: refused within seconds, by a message with the limit
    name=$1 what=$2
    shift 2
    timeout 10 "$@" >out.txt 2>err.txt
    got=$?
    if { [ $got = 1 ] || [ $got = 2 ]; } && grep -qw -- "$(value_of "$name")" err.txt; then
        ok "$what: $(head -n 1 err.txt | cut -c 1-160)"
    else
        not_ok "$what: exit status $got, no '$(value_of "$name")' in: $(head -n 2 err.txt)"
    fi
}

# ---------------------------------------------------------------- recipes and command lines
head -c $(($(value_of RECIPE_BYTES_MAX) + 1)) /dev/zero | tr '\0' '\n' >r.ini
beyond RECIPE_BYTES_MAX "a recipe" "$tools/qat-train" r.ini
{ echo '[data]' && head -c $(($(value_of QAT_RECIPE_LINE_MAX) + 1)) /dev/zero | tr '\0' a && echo; } >r.ini
beyond QAT_RECIPE_LINE_MAX "a line of a recipe" "$tools/qat-train" r.ini
many=$(for i in $(seq $(($(value_of TOOL_LIST_MAX) + 1))); do echo "a$i"; done)
# shellcheck disable=SC2086
beyond TOOL_LIST_MAX "arguments" "$tools/qat-run" $many

# ---------------------------------------------------------------- checkpoints
printf 'QATCKPT\n' >large.ckpt
truncate -s $(($(value_of QAT_CHECKPOINT_MAX_BYTES) + 1)) large.ckpt
beyond QAT_CHECKPOINT_MAX_BYTES "a checkpoint" "$tools/qat-inspect" large.ckpt
rm large.ckpt

# ---------------------------------------------------------------- .qm: fields of header, node, tensor
check "a small model" "$tools/qat-import" "$source/tests/golden/data/ops/add_s8_06/model.tflite" compact.qm
check "with records of one length" "$tools/qat-export" compact.qm good.qm --compact no
u32() { # u32 <number>: its bytes
    for shift in 0 8 16 24; do printf "\\$(printf %03o $((($1 >> shift) & 255)))"; done
}
at() { # at <offset>: the u32 there
    od -An -tu4 -j"$1" -N4 good.qm | tr -d ' '
}
field() { # field <name> <what> <offset>: set to one more than the limit, with the right CRC
    cp good.qm bad.qm
    u32 $(($(value_of "$1") + 1)) | dd of=bad.qm bs=1 seek="$3" conv=notrunc status=none
    head -c 12 bad.qm >head.bin
    tail -c +17 bad.qm >tail.bin
    { cat head.bin && cat head.bin tail.bin | gzip -c | tail -c 8 | head -c 4 && cat tail.bin; } >b.qm
    beyond "$1" "$2" "$tools/qat-inspect" b.qm
}
node=$(at 32) tensor=$(at 24)
field QM_MAX_TENSORS "tensors" 28
field QM_MAX_NODES "nodes" 36
field QM_MAX_INTS "numbers" 44
field QM_MAX_IO "inputs" 68
field QM_MAX_IO "outputs" 76
field QM_MAX_LABELS "labels" 84
field QM_MAX_NODE_INPUTS "inputs of a node" $((node + 12))
field QM_MAX_NODE_OUTPUTS "outputs of a node" $((node + 20))
field QI_MAX_PARAMS "parameters of a node" $((node + 28))
field QM_MAX_TENSOR_VALUES "a side of a tensor" $((tensor + 8))

truncate -s $(($(value_of QM_MAX_FILE_BYTES) + 1)) good.qm
beyond QM_MAX_FILE_BYTES "a .qm" "$tools/qat-run" good.qm p.pgm
rm good.qm
cp "$source/tests/golden/data/ops/add_s8_06/model.tflite" large.tflite
truncate -s $(($(value_of MAX_MODEL_BYTES) + 1)) large.tflite
beyond MAX_MODEL_BYTES "a .tflite" "$tools/qat-import" large.tflite no.qm
rm large.tflite
labels() { # labels <name> <what>: labels.txt is refused
    beyond "$1" "$2" "$tools/qat-import" "$source/tests/golden/data/ops/add_s8_06/model.tflite" no.qm --labels labels.txt
}
seq $(($(value_of MAX_LABELS) + 1)) >labels.txt
labels MAX_LABELS "labels"
truncate -s $(($(value_of MAX_LABEL_BYTES) + 1)) labels.txt
labels MAX_LABEL_BYTES "a file of labels"

# ---------------------------------------------------------------- data
over() { # over <name> <kind> <file> <path of the data>: a file with one byte too many
    truncate -s $(($(value_of "$1") + 1)) "$3"
    printf '[data]\nkind = %s\npath = %s\nattributes = a=b\n' "$2" "$4" | sed "$([ "$2" = table ] || echo /attributes/d)" >d.ini
    beyond "$1" "a file of $2" "$tools/qat-train" d.ini --out no
    rm "$3"
}
over MAX_LIST_BYTES list list.txt list.txt
mkdir -p speech
over MAX_SPLIT_LIST_BYTES wav speech/testing_list.txt speech
over MAX_TABLE_BYTES table table.csv table.csv
mkdir -p coco
over MAX_BYTES coco coco/instances_train.json coco
{ for i in $(seq 257); do printf 'c%d,' "$i"; done && echo; } >table.csv
printf '[data]\nkind = table\npath = table.csv\nattributes = a=b\n' >d.ini
beyond QAT_CSV_COLUMNS "columns of a table" "$tools/qat-train" d.ini --out no
coco() { # coco <images> <categories>
    echo "{\"images\": [$1], \"categories\": [$2], \"annotations\": []}" >coco/instances_train.json
    printf '[data]\nkind = coco\npath = coco\n' >d.ini
}
coco '{"id": 1, "file_name": "a.png", "height": 65537, "width": 1}' '{"id": 1, "name": "a"}'
beyond MAX_SIDE "a side of COCO's pictures" "$tools/qat-train" d.ini --out no
coco '{"id": 1, "file_name": "a.png", "height": 1, "width": 1}' \
    "$(seq 65537 | sed 's/.*/{"id": &, "name": "a"}/' | paste -sd,)"
beyond MAX_CLASSES "COCO's categories" "$tools/qat-train" d.ini --out no

# ---------------------------------------------------------------- pictures
printf 'P5 20000 20000 255\n' >p.pgm
check "a run" "$tools/qat-train" "$source/recipes/quickstart.ini" --set train.steps=2 --set data.train_count=64 \
    --set data.test_count=20 --out run
check "its model" "$tools/qat-export" run/last.ckpt m.qm --samples 2
beyond QAT_PICTURE_MAX_PIXELS "pixels of a picture" "$tools/qat-run" m.qm p.pgm
printf 'P5 1000001 1 255\n' >p.pgm
beyond QAT_PICTURE_MAX_SIDE "a side of a picture" "$tools/qat-run" m.qm p.pgm
truncate -s $(($(value_of MAX_FILE_BYTES) + 1)) p.pgm
beyond MAX_FILE_BYTES "a picture's file" "$tools/qat-run" m.qm p.pgm
exit $failed
