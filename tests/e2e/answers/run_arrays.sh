#!/usr/bin/env bash
# qat-run on whole arrays and folders: all answers are those of the samples one by one, as codes and as real numbers;
# class names of arrays. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

npy() { # npy <file> <dtype> <shape>: an array of the bytes of standard input
    text="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    { printf '\223NUMPY\001\000\166\000%-117s\n' "$text" && cat; } >"$1"
}
body() { # body <file>: its values
    tail -c +129 "$1"
}
octal() { # octal <N> <awk statements that print a value i as octal escapes>
    printf "$(awk "BEGIN { for (i = 0; i < $1; i++) { $2 } }")"
}

# ---------------------------------------------------------------- pictures
printf '[data]\nkind = digits\ntrain_count = 200\ntest_count = 20\n[model]\nfilters = 4, 6\nstrides = 2, 2
[train]\nepochs = 1\nbatch = 20\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "its model" "$tools/qat-export" run/last.ckpt a.qm
check "inputs" "$tools/qat-eval" a.qm --recipe small.ini --dump-inputs in --samples 3
mkdir pictures
for i in 0 1 2; do
    check "sample $i" "$tools/qat-run" a.qm --input in/$i.npy --output y$i.npy
    { printf 'P5 28 28 255\n' && body in/$i.npy; } >pictures/$i.pgm
    body in/$i.npy >>x.bytes
    body y$i.npy >>y.bytes
done
echo text >pictures/notes.txt
npy x.npy '|u1' '3, 28, 28, 1' <x.bytes
npy wanted.npy '|u1' '3, 10, ' <y.bytes
check "three samples" "$tools/qat-run" a.qm --input x.npy --output y.npy
body y.npy >found.bytes
same "have the codes of the single ones" y.bytes found.bytes
has "in an array of three" "'shape': \(3, 10\)" y.npy
check "their answers" "$tools/qat-run" a.qm --input x.npy
has "are told one by one" '^x.npy\[2\]: [0-9]' out.txt
if [ "$(wc -l <out.txt)" = 3 ]; then ok "three lines"; else not_ok "$(wc -l <out.txt) lines"; fi
check "the folder" "$tools/qat-run" a.qm pictures --output p.npy
same "has the same codes" y.npy p.npy
has "in the order of the names" '^pictures/2.pgm: [0-9]' <(tail -n 1 out.txt)
check "as real numbers" "$tools/qat-run" a.qm pictures --output r.npy --real
has "they are float32" "'descr': '<f4', .*'shape': \(3, 10\)" r.npy
code=$(od -An -tu1 -j128 -N1 y.npy | tr -d ' ') number=$(od -An -tf4 -j128 -N4 r.npy | tr -d ' ')
"$tools/qat-run" a.qm pictures/0.pgm --top 10 >out.txt
told=$(grep -oE '[:,] 0 0 \(-?[0-9.]+, code [0-9]+' out.txt | sed -E 's/.*\(([^,]+), code (.*)/\1 \2/')
if awk -v n="$number" -v c="$code" -v t="$told" 'BEGIN { split(t, a, " "); d = n - a[1]; exit !(a[2] == c && d * d < 1e-6) }'; then
    ok "those of class 0 are what is printed: $told"
else
    not_ok "$number, code $code, but it prints $told"
fi

refuses "arrays of another shape" 1 "x2.npy: |u1 of shape [3, 28, 14, 2], but input 0" "$tools/qat-run" a.qm --input \
    "$(npy x2.npy '|u1' '3, 28, 14, 2' <x.bytes && echo x2.npy)"
refuses "no sample" 1 "0 samples" "$tools/qat-run" a.qm --input "$(npy x0.npy '|u1' '0, 28, 28, 1' </dev/null && echo x0.npy)"
refuses "the tensors of three runs" 2 "--dump-tensors works with one picture or sample only" "$tools/qat-run" a.qm --input x.npy --dump-tensors d
refuses "real numbers for pixels" 1 "takes codes, not real numbers" "$tools/qat-run" a.qm --input \
    "$(head -c 1568 /dev/zero | npy x16.npy '<i2' '28, 28, 1' && echo x16.npy)"
mkdir empty
refuses "a folder without pictures" 1 "empty: no pictures in this folder" "$tools/qat-run" a.qm empty
refuses "a file that is not there" 1 "nothing.png" "$tools/qat-run" a.qm nothing.png

# ---------------------------------------------------------------- real numbers, with names of classes
mkdir signals
octal 512 'printf "\\%03o", 35 + 10 * (int(i / 8) % 2) + (i * 7) % 3' | npy signals/train_x.npy '|i1' '64, 8'
octal 64 'printf "\\%03o", i % 2' | npy signals/train_y.npy '|u1' '64,'
cp signals/train_x.npy signals/test_x.npy
cp signals/train_y.npy signals/test_y.npy
printf 'low\nhigh\n' >signals/classes.txt
printf "[data]\nkind = npy\npath = $work/signals\nmean = 40\nstd = 4\n[model]\narch = mlp\nhidden = 4
[train]\nepochs = 30\nbatch = 16\nlr = 0.02\n[quant]\nenabled = yes\n" >signals.ini
check "training on real numbers" "$tools/qat-train" signals.ini --out signals/run
has "with names" 'low 64, high 64' out.txt
check "its export" "$tools/qat-export" signals/run/last.ckpt s.qm
octal 16 'printf "\\%03o\\000", 35 + 10 * (i >= 8)' | npy i16.npy '<i2' '2, 1, 8, 1'
# 35 and 45 as float32 are 0x420c0000 and 0x42340000, as float64 0x4041800000000000 and 0x4046800000000000
octal 16 'printf "\\000\\000\\%s\\102", (i >= 8 ? "064" : "014")' | npy f32.npy '<f4' '2, 1, 8, 1'
octal 16 'printf "\\000\\000\\000\\000\\000\\200\\%s\\100", (i >= 8 ? "106" : "101")' | npy f64.npy '<f8' '2, 1, 8, 1'
for type in i16 f32 f64; do
    check "$type" "$tools/qat-run" s.qm --input $type.npy
    has "$type: the first is low" "^$type.npy\[0\]: 0 low " out.txt
    has "$type: the second is high" "^$type.npy\[1\]: 1 high " out.txt
    check "$type: codes" "$tools/qat-run" s.qm --input $type.npy --output $type.y.npy
    same "$type: they are those of int16" i16.y.npy $type.y.npy
done
check "figures have the names" "$tools/qat-eval" s.qm --recipe signals.ini --predictions s.csv
has "in the answers" '^quantized,1,1,high,1,high,' s.csv
echo more >>signals/classes.txt
refuses "a name too many" 1 "classes.txt: more than 2 lines, expected 2 class names" "$tools/qat-train" signals.ini --out none
exit $failed
