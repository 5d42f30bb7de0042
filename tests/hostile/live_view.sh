#!/usr/bin/env bash
# qat-train --progress full on a terminal, which `script` (and tmux, where it is) makes: what is drawn, in which
# characters and colours, that no line is too long, that nothing of the terminal stays changed, and that the run's
# files are those of a run that shows nothing. Without a terminal there are plain lines.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
escape=$'\033'
recipe=$QAT_SOURCE_ROOT/recipes/quickstart.ini
options=(--set data.train_count=320 --set data.test_count=60 --set train.batch=16 --set model.filters=4,8
    --set model.strides=2 --set train.steps=40 --set train.eval_every=10 --set quant.quant_delay=15)
files="last.ckpt best.ckpt log.csv"
train() { # train <folder> <options...>
    "$tools/qat-train" "$recipe" "${options[@]}" --out "$@"
}

# ---------------------------------------------------------------- without a terminal
check "none" train none --progress none
cp out.txt none.txt
check "plain" train plain --progress plain
cp out.txt plain.txt
check "full into a pipe" train pipe --progress full
without_times() { sed 's/  [0-9]* images.*//; s/ steps in .*s;/ steps;/; s#^[a-z]*/##' "$1"; }
if cmp -s <(without_times plain.txt) <(without_times out.txt); then ok "full into a pipe has the plain lines"; else
    not_ok "full into a pipe: $(diff <(without_times plain.txt) <(without_times out.txt) | head -n 4)"
fi
if grep -q "$escape" out.txt err.txt; then not_ok "full into a pipe has escapes"; else ok "full into a pipe has no escapes"; fi
if grep -q '^step ' none.txt; then not_ok "none has rows"; else ok "none has no rows"; fi
has "none tells the result" '40 steps in' none.txt
refuses "another word" 2 "--progress loud: expected none, plain, bar or full" train x --progress loud
for file in $files; do
    same "full into a pipe: $file" none/$file pipe/$file
done

# ---------------------------------------------------------------- on a terminal
if ! script -qec true /dev/null >/dev/null 2>&1; then
    echo "SKIP a view on a terminal: no script that makes one (package bsdutils)"
    exit $failed
fi
screen() { # screen <columns> <rows> <environment> <folder> <options...>: what a terminal gets, in screen.txt
    columns=$1 rows=$2 environment=$3
    shift 3
    printf '%q ' "$tools/qat-train" "$recipe" "${options[@]}" --out "$@" >command.sh
    # shellcheck disable=SC2086
    env TERM=xterm NO_COLOR= $environment \
        script -qec "stty cols $columns rows $rows && . ./command.sh" screen.txt >/dev/null 2>&1 </dev/null
}
frames() { # frames: the lines of the drawn blocks, without what is written around them
    tr -d '\r' <screen.txt | grep "$escape\[K" | sed "s/$escape\[[0-9]*[A-Za-z]//g"
}
longest() { # longest: columns of the longest of these lines
    frames | LC_ALL=C.UTF-8 wc -L
}
braille=$'\xe2\xa1\|\xe2\xa0\|\xe2\xa2\|\xe2\xa3' # the first two bytes of a braille character

screen 100 40 LC_ALL=C.UTF-8 full --progress full
frames >frames.txt
for word in 'training loss' 'top-1' 'integers' 'slowest layers' 'conv2' 'training graph' 'process, peak' 'ETA' 'step 40/40'; do
    if grep -qF "$word" frames.txt; then ok "the view has: $word"; else not_ok "the view has no $word: $(tail -n 20 frames.txt)"; fi
done
if LC_ALL=C grep -q "$braille" screen.txt; then ok "UTF-8: curves of dots"; else not_ok "UTF-8: no curves of dots"; fi
if grep -q "$escape\[3[0-9]m" screen.txt; then ok "there are colours"; else not_ok "there are no colours"; fi
for file in $files; do
    same "looked at: $file" none/$file full/$file
done
changed=$(LC_ALL=C grep -oE "$escape(\[\?[0-9]+[hl]|[^[]|\[[0-9;]*[^0-9;mKAJH])" screen.txt | head -n 3 | cat -v)
if [ -z "$changed" ]; then ok "nothing of the terminal is changed"; else not_ok "the terminal is changed: $changed"; fi
if tr -d '\r' <screen.txt | awk -v e="$escape" '{ n = gsub(e "\\[[1-9][0-9]*m", "") - gsub(e "\\[0m", ""); if (n) bad = 1 } END { exit bad }'; then
    ok "each line ends without a style"
else
    not_ok "a line ends with a style"
fi

screen 100 40 "LC_ALL=C.UTF-8 NO_COLOR=1" nocolour --progress full
if grep -q "$escape\[[0-9]*m" screen.txt; then not_ok "NO_COLOR: there are styles"; else ok "NO_COLOR: no styles"; fi
screen 100 40 LC_ALL=C ascii --progress full
if LC_ALL=C grep -q "$(printf '[\200-\377]')" screen.txt; then not_ok "LC_ALL=C: more than ASCII"; else ok "LC_ALL=C: ASCII only"; fi
frames >frames.txt
if grep -qF '***' frames.txt; then ok "LC_ALL=C: curves of letters"; else not_ok "LC_ALL=C: no curves of letters"; fi
screen 100 40 "LC_ALL=C.UTF-8 TERM=dumb" dumb --progress full
if grep -q "$escape" screen.txt; then not_ok "TERM=dumb: escapes"; else ok "TERM=dumb: plain lines"; fi
has "TERM=dumb: rows" '^step 40/40' screen.txt
for size in "20 5" "39 24" "40 24" "60 12" "75 30" "76 30" "77 16" "300 100"; do
    # shellcheck disable=SC2086
    screen $size LC_ALL=C.UTF-8 size --progress full --overwrite
    if [ "$(longest)" -lt "${size% *}" ] && [ "$(longest)" -gt 0 ]; then ok "$size: no line is too long"; else
        not_ok "$size: a line of $(longest) columns"
    fi
    has "$size: the run ends well" '40 steps in' screen.txt
done

# ---------------------------------------------------------------- names of strangers
sed "s/^name = .*/name = a $(printf '\302\233')31m b/" "$recipe" >named.ini
recipe=named.ini screen 100 40 LC_ALL=C.UTF-8 named --progress full
if LC_ALL=C grep -q "$(printf '\302\233')" screen.txt; then not_ok "a title acts on the terminal"; else ok "a title does not act on the terminal"; fi

# ---------------------------------------------------------------- interrupted, and made smaller
if ! command -v tmux >/dev/null; then
    echo "SKIP a terminal that is interrupted and made smaller: no tmux"
    exit $failed
fi
mux() { tmux -S "$work/tmux" -f /dev/null "$@"; }
mux new-session -d -x 100 -y 40 -s view "env LC_ALL=C.UTF-8 bash --norc"
trap 'mux kill-server; rm -rf "$work"' EXIT
sees() { # sees <text>: within a minute
    for _ in $(seq 600); do
        mux capture-pane -p -t view >pane.txt
        grep -qF "$1" pane.txt && return 0
        sleep 0.1
    done
    return 1
}
printf '%q ' "$tools/qat-train" "$recipe" "${options[@]}" --set train.steps=100000 --out stopped --progress full >command.sh
mux send-keys -t view "cd '$work'; . ./command.sh" Enter
if sees 'slowest layers'; then ok "tmux: the view is there"; else not_ok "tmux: $(cat pane.txt)"; fi
mux resize-window -t view -x 60 -y 20
sleep 1
sees 'training loss'
if [ "$(grep -cF 'training loss' pane.txt)" = 1 ] && [ "$(grep -c 'ETA' pane.txt)" -le 1 ]; then ok "tmux: smaller, one view"; else
    not_ok "tmux: smaller: $(cat pane.txt)"
fi
mux send-keys -t view C-c
if sees 'stopped at step'; then ok "tmux: Ctrl-C ends it"; else not_ok "tmux: $(cat pane.txt)"; fi
mux send-keys -t view "echo still-\$((40 + 2))" Enter
if sees 'still-42'; then ok "tmux: the shell goes on below"; else not_ok "tmux: $(cat pane.txt)"; fi
below=$(awk '/stopped at step/ { at = NR } /still-42/ { if (NR > at && at) print "below" }' pane.txt | head -n 1)
if [ "$below" = below ]; then ok "tmux: nothing is drawn over"; else not_ok "tmux: drawn over: $(cat pane.txt)"; fi
exit $failed
