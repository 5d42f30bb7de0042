#!/usr/bin/env bash
# Names from strangers' files on a terminal: layers, tensors, classes, files and plugins are called
# ESC [ 1 m and the like. No command may print such a byte, and a graph for Graphviz stays one.
set -u
source=${QAT_SOURCE_ROOT:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "$source/tests/common/checks.sh"
escape=$'\033[1m' # what a terminal acts on
evil=$'\033[1m"\\' # and what ends a string of Graphviz

clean() { # clean <what> <exit status> <command...>: prints no control character but line ends and tabs
    what=$1 status=$2
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    if [ $got != "$status" ]; then
        not_ok "$what: exit status $got, wanted $status: $(head -n 1 err.txt)"
    elif LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" out.txt err.txt; then
        not_ok "$what: $(LC_ALL=C grep -h "[$(printf '\001-\010\013-\037\177')]" out.txt err.txt | head -n 2 | cat -v)"
    else
        ok "$what"
    fi
}

shows() { # shows <what> <command...>: clean, and the name can be read
    clean "$1" 0 "${@:2}"
    grep -qF '\x1b[1m' out.txt || not_ok "$1: shows no name: $(head -n 3 out.txt)"
}

json() { # json <what> <command...>: clean, with the name as JSON has it
    clean "$1" 0 "${@:2}"
    grep -qF '\u001b[1m' out.txt || not_ok "$1: has no name: $(head -n 3 out.txt)"
}

dot_strings() { # dot_strings <what> <file>: each line's strings are closed
    if sed 's/\\\\//g; s/\\"//g' "$2" | awk '{ n = gsub(/"/, "") } n % 2 { bad = 1 } END { exit bad }'; then ok "$1"; else
        not_ok "$1: a string is not closed: $(grep -n label "$2" | head -n 3)"
    fi
}

# ---------------------------------------------------------------- classes, named by folders
picture() { printf 'P5 8 8 255\n' && head -c 64 /dev/zero | tr '\0' "$1"; }
for class in "$evil" "b$escape"; do
    for split in train test; do
        mkdir -p "data$escape/$split/$class"
        for i in 1 2 3 4; do picture "\\$((i * 50 + ${#class}))" >"data$escape/$split/$class/$i$escape.pgm"; done
    done
done
cat >small.ini <<INI
[data]
kind = folder
path = data$escape
height = 8
channels = 1
[model]
arch = convnet
filters = 4
strides = 2
[train]
steps = 2
batch = 4
[quant]
enabled = yes
quant_delay = 0
INI
shows "qat-train" "$tools/qat-train" small.ini --out "run$escape"
cp "run$escape/last.ckpt" a.ckpt
clean "qat-train --dry-run" 0 "$tools/qat-train" small.ini --dry-run
clean "a run that is there" 1 "$tools/qat-train" small.ini --out "run$escape"
shows "qat-export" "$tools/qat-export" a.ckpt a.qm --samples 4
json "qat-export --json" "$tools/qat-export" a.ckpt a.qm --samples 4 --json
shows "qat-inspect of classes" "$tools/qat-inspect" a.qm
shows "qat-inspect --labels" "$tools/qat-inspect" a.qm --labels
json "qat-inspect --json" "$tools/qat-inspect" a.qm --json
shows "qat-eval of a checkpoint" "$tools/qat-eval" a.ckpt
shows "qat-eval of a .qm" "$tools/qat-eval" a.qm --data "folder:data$escape"
json "qat-eval --json" "$tools/qat-eval" a.ckpt --json
picture '\0' >"p$escape.pgm"
shows "qat-run" "$tools/qat-run" a.qm "p$escape.pgm"
json "qat-run --json" "$tools/qat-run" a.qm "p$escape.pgm" --json
shows "qat-bench" "$tools/qat-bench" "run$escape/last.ckpt" --runs 1

cp a.qm $'x\xff\xc3\xb6.qm' # not UTF-8, and UTF-8
clean "a file's name" 0 "$tools/qat-inspect" $'x\xff\xc3\xb6.qm'
grep -qF 'x\xff'$'\xc3\xb6''.qm: ' out.txt || not_ok "it is shown: $(head -n 1 out.txt)"
clean "a file's name as JSON" 0 "$tools/qat-inspect" $'x\xff\xc3\xb6.qm' --json
grep -qF '"path": "x\ufffd'$'\xc3\xb6''.qm"' out.txt || not_ok "as JSON: $(head -c 80 out.txt)"
cp a.qm $'x\xf3\xa0\x81\x81.qm' # U+E0041, which hides
clean "a hidden character of a file's name as JSON" 0 "$tools/qat-inspect" $'x\xf3\xa0\x81\x81.qm' --json
grep -qF '"path": "x\udb40\udc41.qm"' out.txt || not_ok "as JSON: $(head -c 80 out.txt)"

# ---------------------------------------------------------------- tensors and ops of a .qm
crc() { # crc <files...>: CRC-32 of all their bytes, as a file has it; gzip knows it
    cat "$@" | gzip -c | tail -c 8 | head -c 4
}
add=$source/tests/golden/data/ops/add_s8_06/model.tflite
check "a foreign model" "$tools/qat-import" "$add" good.qm
LC_ALL=C sed "s/output/x\\x1b[1m\"/g; s/input1/\\x1b[1m\"\\\\/g" good.qm >bad.qm
head -c 12 bad.qm >head.bin
tail -c +17 bad.qm >tail.bin
crc head.bin tail.bin >crc.bin
cat head.bin crc.bin tail.bin >b.qm
LC_ALL=C sed "s/output/x\\x1b[1m\"/; s/input1/\\x1b[1m\"\\\\/" "$add" >b.tflite
clean "qat-import" 0 "$tools/qat-import" b.tflite c.qm
shows "qat-inspect of tensors" "$tools/qat-inspect" b.qm
shows "qat-inspect --graph" "$tools/qat-inspect" b.qm --graph
shows "qat-inspect --tensor" "$tools/qat-inspect" b.qm --tensor 0
json "qat-inspect --json of tensors" "$tools/qat-inspect" b.qm --json
clean "qat-inspect --graph=dot" 0 "$tools/qat-inspect" b.qm --graph=dot
dot_strings "is a graph" out.txt
shows "qat-inspect --plot" "$tools/qat-inspect" b.qm --plot plots
shows "qat-bench of a .qm" "$tools/qat-bench" b.qm --runs 1

# ---------------------------------------------------------------- tensors of a checkpoint
rename() { # rename <pattern> <file>: a checkpoint with other names
    LC_ALL=C sed "$1" a.ckpt | head -c -4 >body.bin
    crc body.bin >crc.bin
    cat body.bin crc.bin >"$2"
}
rename 's#\x00conv1\(/[a-z_]*/ema_mean\)#\x00\x1b[1m"\1#' c.ckpt # that of PARM, not that of the graph
rename '/^output = logits/b; s/logits/\x1b[1m"\\/g' d.ckpt
shows "qat-inspect of parameters" "$tools/qat-inspect" c.ckpt
shows "qat-inspect --tensor of a parameter" "$tools/qat-inspect" c.ckpt --tensor "$escape\"/bn/ema_mean"
json "the same as JSON" "$tools/qat-inspect" c.ckpt --tensor "$escape\"/bn/ema_mean" --json
clean "an error with a name" 2 "$tools/qat-inspect" c.ckpt --tensor "no$escape"

# ---------------------------------------------------------------- messages
refused() { # refused <what> <exit status> <command...>: clean, and the message shows the name
    clean "$@"
    grep -qF '\x1b[1m' err.txt || not_ok "$1: shows no name: $(head -n 2 err.txt)"
}
refused "a layer's name in a graph" 1 "$tools/qat-inspect" d.ckpt --graph=dot
refused "a file that is not there" 1 "$tools/qat-inspect" "no$escape.qm"
refused "an option" 2 "$tools/qat-inspect" "--no$escape"
printf '[data]\nkind%s = digits\n' "$escape" >bad.ini
refused "a key of a recipe" 2 "$tools/qat-train" bad.ini --dry-run
printf '%s\n' "$escape" >list.txt
refused "a line of a list" 1 "$tools/qat-eval" a.qm --data list:list.txt
if "${CC:-cc}" -std=c11 -shared -fPIC -I "$source/include" "$source/examples/swish.c" -o "$escape.so" -lm 2>cc.txt; then
    check "training with a plugin of such a name" "$tools/qat-train" small.ini --set "plugin.path=./$escape.so" --out plugin
    refused "a plugin's name" 1 "$tools/qat-inspect" plugin/last.ckpt
else
    not_ok "a plugin of such a name is not compiled: $(head -n 1 cc.txt)"
fi
exit $failed
