#!/usr/bin/env bash
# qat-report on short runs: what the page has, that it loads nothing, is valid HTML and small; foreign text in it; what
# it refuses. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6\nstrides = 2, 2
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\neval_every = 5\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9
range_log_every = 5\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "one of fewer bits" "$tools/qat-train" small.ini --out four --set quant.weight_bits=4
check "a float run" "$tools/qat-train" small.ini --out float --set quant.enabled=no

lacks() { # lacks <what> <pattern> <file>
    if grep -qE -- "$2" "$3"; then not_ok "$1: $(grep -oE -- "$2" "$3" | head -n 1)"; else ok "$1"; fi
}

page() { # page <name> <run...>: make a page, and check what holds for every page
    name=$1
    shift
    check "$name: page of $*" "$tools/qat-report" "$@" -o "$name.html" --samples 8
    if [ "$(wc -c <"$name.html")" -le 3000000 ]; then ok "$name: at most 3 MB"; else not_ok "$name: too large"; fi
    lacks "$name: nothing is loaded" '(src|href)="?(https?:)?//|url\(|@import|<script|<link' "$name.html"
    lacks "$name: no number that is not finite" '>[-+]?(nan|inf)|"[^"]*\b(nan|inf)\b[^"]*"' "$name.html"
    if command -v tidy >/dev/null; then
        check "$name: valid HTML" tidy -q -e "$name.html"
    else
        echo "SKIP $name: valid HTML: no tidy"
    fi
}

page one run
has "curves of the log" 'aria-label="top-1 on test data"|>top-1 on test data<' one.html
has "a range over time" 'range of conv1' one.html
has "which was observed before it is quantized" '^5,conv1/relu/q,activation,ema,8,1,.*,0$' run/quant.csv
has "and then marked" '^40,conv1/relu/q,activation,ema,8,1,.*,1$' run/quant.csv
lacks "weights are only there when they are quantized" '^5,.*,weights,' run/quant.csv
has "scales" 'scales of all tensors' one.html
has "the table of qat-debug" '<th>whole dB</th>' one.html
has "costs" '<td>conv2d\+batch_norm\+relu</td>' one.html
has "times" '<th>time \[ms\]</th>' one.html
has "where the networks part" '<p>Simulation and integer first differ in a code in <b>' one.html
has "worst channels" '<th>worst channels</th>' one.html
has "figures of each class" '<th>precision \[%\]</th>' one.html
has "confusion" 'share of the true class' one.html
has "worst answers with pictures" '<img alt="the picture" src="data:image/png;base64,iVBOR' one.html
has "which says what they are" 'sample [0-9]+: says [0-9], is [0-9]; margin' one.html
right=$(sed -n 's/.*integer model on 60 samples of the test data: top-1 \([0-9.]*\) %.*/\1/p' one.html)
check "an export" "$tools/qat-export" run/last.ckpt a.qm --samples 4
"$tools/qat-eval" a.qm --recipe small.ini --json >eval.json
check "as many answers are right as qat-eval says: $right %" python3 -c "import json; a = json.load(open('eval.json')); v = [x for k, x in a.items() if k.endswith('top1')]; assert any(abs(100 * x - $right) < 0.006 for x in v), a"
has "the certificate" 'SHA-256 of the .qm' one.html
has "histograms" 'Each bar is one code' one.html
has "settings" '^quant_delay = ' one.html
page three run four float
has "settings that differ" '<td>quant.weight_bits</td>' three.html
has "a difference" '\([-+][0-9.]+\)' three.html
has "a float run says why it has no integers" 'It is a float run' three.html
{ sed '/^\[model\]/,/^strides/d' small.ini && printf '[model]\narch = layers\n[layer.c]\nop = conv2d\nfilters = 4\nkernel = 3\nstride = 2
activation = relu\n[layer.f]\nop = flatten\n[layer.scores]\nop = fully_connected\nunits = 10\n'; } >layers.ini
check "a network of sections" "$tools/qat-train" layers.ini --out layers
sed 's/^kernel = 3/kernel = 5/' layers.ini >wide.ini
check "one with another kernel" "$tools/qat-train" wide.ini --out wide
page sections layers wide
has "a setting of a layer differs" '<td>layer.c.kernel</td>' sections.html
lacks "one that does not is not there" '<td>layer.c.stride</td>' sections.html
page checkpoint run/last.ckpt

# ---------------------------------------------------------------- answers that are no classes
task() { # task <name> <recipe>: a page of a short run
    check "$1: a run" "$tools/qat-train" "$2" --out "$1"
    page "$1" "$1"
}
printf '[data]\nkind = scenes\nheight = 64\ntrain_count = 24\ntest_count = 12\n[model]\narch = mobilenet_ssd
multiplier = 0.05\n[train]\nsteps = 4\nbatch = 8\n[quant]\nenabled = yes\n' >boxes.ini
task boxes boxes.ini
has "boxes: the figures" 'on 12 samples of the test data: AP@' boxes.html
has "boxes: pictures with what is there" 'stroke="#fff" stroke-dasharray' boxes.html
has "boxes: each judged alone" '<figcaption>sample [0-9]+: AP50 [0-9.e-]+ %; [0-9]+ there, [0-9]+ found<' boxes.html
for name in segmentation multi_label regression anomaly; do
    sed -E 's/^train_count.*/train_count = 60/; s/^test_count.*/test_count = 20/; s/^epochs.*/epochs = 2/; s/^height.*/height = 32/; s/^batch = .*/batch = 10/' \
        "$QAT_SOURCE_ROOT/recipes/$name.ini" >$name.ini
    task $name $name.ini
done
has "pixels: the answer beside the truth" '<img alt="the answer" src=.*<img alt="the true classes" src=' segmentation.html
has "labels: what is said and what is" 'sample [0-9]+: says [a-z ,]+; is [a-z ,]+<' multi_label.html
has "values: the same" 'sample [0-9]+: says [0-9.e+-]+, [0-9.e+-]+; is [0-9.]+, [0-9.]+<' regression.html
has "values: their errors" '<th>root mean square \[its unit\]</th>' regression.html
has "validation data are named" 'aria-label="R2 on validation data"|>R2 on validation data<' regression.html
has "anomalies: a threshold's answers" 'sample [0-9]+: says (anomaly; is none|none; is anomaly)<' anomaly.html

# ---------------------------------------------------------------- foreign text and broken folders
sed 's/conv1/<script>alert(1)<\/script>/' run/quant.csv >quant.csv
cp -r run '<b>&"'
cp quant.csv '<b>&"/quant.csv'
page foreign '<b>&"'
has "foreign names are escaped" '&lt;script&gt;alert' foreign.html
has "the name of a folder too" '&lt;b&gt;&amp;&quot;' foreign.html
sed '2s/$/,1/' run/log.csv >'<b>&"/log.csv'
refuses "a row of too many columns" 1 'log.csv:2: not a row of' "$tools/qat-report" '<b>&"' -o x.html
printf 'step,loss\n1,nan\n2,1e999\n3,0.5\n' >'<b>&"/log.csv'
page odd '<b>&"'
printf '\377\001q' >'<b>&"/log.csv'
refuses "bytes without a line" 1 'log.csv: not a table' "$tools/qat-report" '<b>&"' -o x.html
printf '\377\001q\n' >'<b>&"/log.csv'
refuses "bytes in place of a log" 1 'log.csv' "$tools/qat-report" '<b>&"' -o x.html
mkdir empty
refuses "an empty folder" 1 "neither last.ckpt nor best.ckpt" "$tools/qat-report" empty -o x.html
refuses "a folder that is not there" 1 "there is no such run" "$tools/qat-report" nowhere -o x.html
refuses "what is no checkpoint" 1 "not a checkpoint" "$tools/qat-report" small.ini -o x.html
refuses "no output" 2 "give -o" "$tools/qat-report" run
if [ -e x.html ]; then not_ok "a refused run leaves a page"; else ok "a refused run leaves no page"; fi
refuses "the page over a checkpoint" 2 "this is a checkpoint" "$tools/qat-report" run -o run/last.ckpt
exit $failed
