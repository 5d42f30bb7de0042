#!/usr/bin/env bash
# The examples of docs/worked-examples.md are real: each commit of its table touched as many files as the table says,
# and has every line of the diffs that its section shows. A checkout without history skips this. And the facts of every
# integer op stand in three files. One `ok -` or `not ok -` line a check.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
page=$QAT_SOURCE_ROOT/docs/worked-examples.md
in_git() {
    git -C "$QAT_SOURCE_ROOT" "$@"
}

# ---------------------------------------------------------------- commits
# rows: "anchor|first line of the commit|files|word" of the table
rows() {
    sed -nE 's/^\| \[[^]]*\]\(#([^)]*)\) \| `([^|]*)` \| ([0-9]+)( that name `([^`]*)`.*)? \|$/\1|\2|\3|\5/p' "$page"
}
section() { # section <anchor>: the lines of its diffs
    awk -v wanted="$1" '
        /^## / { title = tolower(substr($0, 4)); gsub(/ /, "-", title); gsub(/[^a-z0-9_-]/, "", title) }
        /^```/ { inside = $0 == "```diff" && title == wanted; next }
        inside' "$page"
}
touched() { # touched <commit> <word>: its files; with a word, those below lib and tests whose new lines have it
    if [ -z "$2" ]; then in_git show --format= --name-only -M "$1"; else
        in_git show --format= "$1" -- lib tests | awk -v word="$2" '
            /^\+\+\+ / { file = substr($2, 3); next }
            /^\+/ && index($0, word) && !seen[file]++ { print file }'
    fi
}
example() { # example <anchor> <first line> <files> <word>
    commit=$(in_git log -F --grep "$2" --format='%H %s' | awk -v s="$2" 'substr($0, 42) == s { print $1; exit }')
    if [ -z "$commit" ]; then
        not_ok "$1: the history has no commit '$2'"
        return
    fi
    n=$(touched "$commit" "$4" | grep -c .)
    if [ "$n" = "$3" ]; then ok "$1: $n files, commit ${commit:0:8}"; else not_ok "$1: $n files, the table says $3"; fi
    in_git show --format= "$commit" >shown.diff
    section "$1" >section.diff
    missing=$(while IFS= read -r line; do grep -qxF -e "$line" shown.diff || echo "$line"; done <section.diff)
    if [ -s section.diff ] && [ -z "$missing" ]; then ok "$1: its diff is the commit's"; else
        not_ok "$1: not in the commit: $missing"
    fi
}

[ "$(rows | wc -l)" -ge 5 ] || not_ok "only $(rows | wc -l) rows of the table are found"
if [ "$(in_git rev-parse --is-shallow-repository 2>/dev/null)" != false ] ||
    [ "$(in_git rev-list --count HEAD)" -lt 100 ]; then
    echo "SKIP worked examples: this checkout has no history"
else
    while IFS='|' read -r anchor subject files word; do
        example "$anchor" "$subject" "$files" "$word"
    done < <(rows)
    # that it can fail
    IFS='|' read -r anchor subject files word < <(rows)
    if example "$anchor" "$subject" 99 "$word" | grep -q "not ok.*the table says 99" &&
        example "$anchor" "$subject of old" 1 "" | grep -q "not ok.*no commit"; then
        ok "a wrong count and a wrong name would be noticed"
    else
        not_ok "a wrong count or a wrong name is not noticed"
    fi
fi

# ---------------------------------------------------------------- facts of integer ops
cd "$QAT_SOURCE_ROOT/lib" || exit 1
list() { # list <header> <macro>: the names in a list of X(name)
    sed -n "/#define $2(X)/,/[^\\\\]\$/p" "$QAT_SOURCE_ROOT/$1" | grep -oE 'X\([a-z0-9_]+\)' | sed 's/X(\(.*\))/\1/'
}
kernels=$(list include/qat/infer.h QI_KERNELS)
emitted=$(list lib/integer/quant_ops.h QAT_INTEGER_OPS)
wrong=
for op in $kernels; do
    places=$(grep -rlE "qi_kernel qi_kernel_$op =|\{&qi_kernel_$op,|qat_integer_op qat_integer_$op =" --include='*.c' . | wc -l)
    wanted=2
    grep -qx "$op" <<<"$emitted" && wanted=3
    [ "$places" = $wanted ] || wrong+=" $op ($places, not $wanted)"
done
if [ -n "$kernels" ] && [ -z "$wrong" ]; then
    ok "facts of $(wc -l <<<"$kernels") integer ops: 3 files each of the $(wc -l <<<"$emitted") that freezing emits, 2 of the others"
else
    not_ok "facts of integer ops stand in other files, or the lists are not found:$wrong"
fi
exit $failed
