#!/usr/bin/env bash
# The RAM that qat-train --dry-run prints is that of the exported model: arena and model memory are equal to the byte,
# for networks of several kinds. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
recipes=${QAT_SOURCE_ROOT:?}/recipes
examples=$QAT_BUILD_ROOT/examples
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

few="--set train.epochs=1 --set train.steps=2 --set train.batch=8 --set data.train_count=32 --set data.test_count=16"
agrees() { # agrees <name> <recipe> <settings...>
    name=$1 recipe=$2
    shift 2
    # shellcheck disable=SC2086
    set -- $few --set quant.enabled=yes --set quant.quant_delay=0 "$@"
    # shellcheck disable=SC2086
    check "$name: dry run" "$tools/qat-train" "$recipe" --dry-run ${plugin:+--plugin "$plugin"} "$@"
    said=$(sed -n 's/^RAM on a device: [0-9]* bytes: device arena \([0-9]*\) bytes, model memory \([0-9]*\) bytes$/\1 \2/p' out.txt)
    flash=$(sed -n "s/^as a \\.qm with the recipe's bits: \\([0-9]*\\) bytes, .*/\\1/p" out.txt)
    sum=$(sed -n 's/^RAM on a device: \([0-9]*\) bytes.*/\1/p' out.txt)
    check "$name: training" "$tools/qat-train" "$recipe" --out "run-$name" "$@"
    # shellcheck disable=SC2086
    check "$name: export" "$tools/qat-export" "run-$name/last.ckpt" "$name.qm" --samples 4 ${plugin:+--plugin "$plugin"}
    arena=$(sed -n 's/.*device arena \([0-9]*\) bytes$/\1/p' out.txt)
    # shellcheck disable=SC2086
    check "$name: inspect" "$tools/qat-inspect" "$name.qm" ${plugin:+--plugin "$plugin"}
    memory=$(sed -n 's/^model memory \([0-9]*\) bytes.*/\1/p' out.txt)
    if [ -n "$said" ] && [ "$said" = "$arena $memory" ] && [ "$sum" = $((arena + memory)) ]; then
        ok "$name: arena and model memory $said, as after training"
    else
        not_ok "$name: --dry-run says '$said', in all '$sum'; after training '$arena $memory'"
    fi
    # shellcheck disable=SC2086
    check "$name: its file alone" "$tools/qat-export" "$name.qm" "$name-alone.qm" --strip=description,labels,test \
        ${plugin:+--plugin "$plugin"}
    bytes=$(wc -c <"$name-alone.qm")
    if [ "$flash" = "$bytes" ] || { [ "${least:-0}" -gt 0 ] && [ "$flash" -ge "$bytes" ] && [ "$bytes" -ge "$least" ]; }; then ok "$name: a .qm of $bytes bytes, as after training"; else
        not_ok "$name: --dry-run says a .qm of '$flash' bytes; after training $bytes"
    fi
}

plugin=
agrees quickstart "$recipes/quickstart.ini"
agrees tflite "$recipes/quickstart.ini" --set quant.layout=int8 --set quant.profile=tflite --set model.output=softmax
agrees wide "$recipes/quickstart.ini" --set quant.activation_bits=16 --set quant.layout=int8 --set quant.profile=tflite
agrees four_bits "$recipes/quickstart.ini" --set quant.weight_bits=4 --set quant.activation_bits=4
for scheme in bwn twn dorefa weight_norm apot; do
    agrees "$scheme" "$recipes/quickstart.ini" --set quant.layout=int8 --set quant.weight_bits=3 --set quant.weight_ranges=$scheme \
        --set "quant.layer @last.weight_ranges=tqt" --set "quant.layer @last.weight_bits=5"
done
agrees inq "$recipes/quickstart.ini" --set quant.weight_bits=4 --set quant.weight_ranges=inq --set quant.inq_stages="0, 0, 1, 1" \
    --set quant.bn_freeze_delay=0
least=17000 # a layer that has been trained for two steps may not have the lowest code yet
for full in lsq_full tqt_full; do
    agrees "$full" "$recipes/quickstart.ini" --set quant.layout=int8 --set quant.weight_bits=2 --set quant.weight_ranges=$full
done
least=
printf '[data]\nkind = shapes\n[model]\narch = mobilenet_v2\nmultiplier = 0.35\n' >mobilenet.ini
agrees mobilenet mobilenet.ini
printf '[data]\nkind = shapes\n[model]\narch = inception_small\n' >inception.ini
agrees inception inception.ini
printf '[data]\nkind = faces\nheight = 32\n[model]\narch = mobilenet_v1\nmultiplier = 0.25\n' >faces.ini
agrees attributes faces.ini
printf '[data]\nkind = scenes\nheight = 64\n[model]\narch = mobilenet_ssd\nmultiplier = 0.25\n' >scenes.ini
agrees detector scenes.ini
plugin=$examples/libposition_scale.so
printf '[data]\nkind = digits\n[model]\narch = layers\n[layer.gain]\nop = position_scale\n[layer.flat]\nop = flatten
[layer.logits]\nop = fully_connected\nunits = 10\n[plugin]\npath = %s\n' "$plugin" >plugin.ini
agrees plugin plugin.ini

check "dry run of a network with a float layer" "$tools/qat-train" "$recipes/quickstart.ini" --dry-run \
    --set quant.activation_ranges=none
has "says why it is not known" '^as C source: not known: .' out.txt
has "says it once" '^RAM on a device: not known either$' out.txt

# ---------------------------------------------------------------- the table
printf '[data]\nkind = digits\n[model]\narch = layers\n[layer.a_name_of_more_than_28_characters]\nop = conv2d\nfilters = 2
[layer.flat]\nop = flatten\n[layer.logits]\nop = fully_connected\nunits = 10\n' >long.ini
check "dry run of a network with a long name" "$tools/qat-train" long.ini --dry-run
widths=$(sed -n '/^layer /,/^total /p' out.txt | awk '{print length}' | sort -u | wc -l)
if [ "$widths" = 1 ]; then ok "its columns are below each other"; else not_ok "its table has lines of $widths lengths"; fi
exit $failed
