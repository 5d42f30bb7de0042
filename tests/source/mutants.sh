#!/usr/bin/env bash
# Deliberate mistakes: does anything notice them? Run by hand:
#
#     tests/source/mutants.sh [NAME...]
#     tests/source/mutants.sh --check        # only: does each expression still change its file? Seconds
#     tests/source/mutants.sh --seeds N      # no mutant: N times the networks, all of which must be accepted
#
# NAME is a mutant's name, or that of a table in tests/source/mutants (engine, freeze, fold, ...). Without
# a name all of them run: about 20 minutes on two processors. The working copy is copied to a temporary
# folder and built there; TREE in the environment names another working copy to mutate. Each mutant is
# one sed expression on one file of the copy. The script checks that the expression changed the file.
# There are two kinds:
#
# mutant NAME TEST FILE EXPRESSION
#     A test program is built with the mistake and must fail. Reversed ties in the shared arithmetic
#     are invisible to any comparison of two programs that share it: the goldens (test_fixedpoint) have
#     to catch them. A changed kernel of the engine differs from the exact evaluation: the property
#     test has to catch it.
#
# export_mutant NAME FILE EXPRESSION
#     qat-export is built with the mistake and has to convert every network of networks.sh. These were
#     trained before by the unchanged programs. Wherever the mistake would change the .qm, qat-export
#     itself must refuse to write it: exit status 1, a message of the verification, no file left.
#
#         refused   every network whose file the mistake changes was refused, and there is such a one
#         MISSED    a network's file is another one, and qat-export did not notice
#         BROKEN    the mutant says nothing: its expression changes nothing, or no network's file; it
#                   does not compile; qat-export crashed or failed for another reason
#
# freeze_mutant NAME FILE EXPRESSION is both: the property test must fail, and qat-export must refuse.
#
# Unchanged, both tests must pass, and every network must be exported.
# Exit status 0: every mutant was noticed.
set -eu
tables=$(cd "$(dirname "$0")/mutants" && pwd)
root=${TREE:-$(cd "$tables/../../.." && pwd)}
QAT_DATA=${QAT_DATA:-$root/../shared/data}
export QAT_DATA
if [ "${1-}" = --check ] && ! git -C "$root" rev-parse --git-dir >/dev/null 2>&1; then
    echo "SKIP mutants: no git, or not a working copy"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/tree"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - 2>/dev/null) |
    tar -x -C "$work/tree"
cd "$work/tree"
check=
[ "${1-}" != --check ] || { check=yes; shift; }
wanted=" $* "
caught=0
missed=0
seed=

wants() # NAME
{
    case $wanted in "  " | *" $1 "* | *" $table "*) ;; *) return 1 ;; esac
}

found() # WORD TEXT
{
    printf '%-8s%s\n' "$1" "$2"
    case $1 in MISSED | BROKEN) missed=$((missed + 1)) ;; *) caught=$((caught + 1)) ;; esac
}

apply() # FILE EXPRESSION: false if that changes nothing
{
    cp "$1" "$work/original"
    sed "$2" "$work/original" >"$1"
    ! cmp -s "$1" "$work/original"
}

only_looks() # NAME FILE EXPRESSION: with --check, does the expression change the file? Nothing is built
{
    [ -n "$check" ] || return 1
    if apply "$2" "$3"; then caught=$((caught + 1)); else found BROKEN "$1: the expression changes nothing in $2"; fi
    cp "$work/original" "$2"
}

# ---------------------------------------------------------------- mutants that a test must notice

prepare_tests()
{
    [ ! -d "$work/build" ] || return 0
    meson setup "$work/build" -Dwerror=false -Dbuildtype=release -Dtests=enabled >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
    for test in test_fixedpoint test_property; do
        build_and_run $test || { cat "$work/out"; echo "$test fails without a mutant"; exit 1; }
        echo "passes  $test, unchanged"
    done
}

build_and_run() # TEST
{
    ninja -C "$work/build" "tests/$1" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    (cd "$work" && QAT_SOURCE_ROOT=$work/tree "$work/build/tests/$1" >"$work/out" 2>&1)
}

mutant() # NAME TEST FILE EXPRESSION
{
    wants "$1" || return 0
    if only_looks "$1" "$3" "$4"; then return 0; fi
    prepare_tests
    if ! apply "$3" "$4"; then
        found BROKEN "$1: the expression changes nothing in $3"
    elif build_and_run "$2"; then
        found MISSED "$1: $2 passes with it"
    else
        found caught "$1 by $2: $(grep -m1 -E 'differ, first|quanta away|:F:|:E:' "$work/out" || tail -n 1 "$work/out")"
    fi
    cp "$work/original" "$3"
}

# ---------------------------------------------------------------- mutants that qat-export must notice

nets=$work/networks
names=$work/names
# What a refusal by the verification says.
refusal='^qat-export: (export refused|certificate|the engine refuses the model|the known-answer test fails|\.qm: |.*the quantizer .* makes .* of weight|.* is not elementwise)'

build_export() # TARGET...: with little optimization, since that is quicker than running it
{
    ninja -C "$work/build-export" "$@" >"$work/log" 2>&1
}

prepare_export()
{
    [ ! -d "$work/build-export" ] || return 0
    meson setup "$work/build-export" -Dwerror=false -Dbuildtype=custom -Doptimization=1 -Ddebug=false \
        -Dtests=disabled >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    build_export tools/qat-train tools/qat-export examples/libswish.so examples/libposition_scale.so ||
        { cat "$work/log"; exit 1; }
    make_networks
    [ "$(accepted)" = "$(wc -l <"$names")" ] || exit 1
    echo "exports $(accepted) networks, unchanged"
}

make_networks() # trained, and exported to $nets/right
{
    rm -rf "$nets"
    mkdir "$nets"
    python3 -B "$tables/make_data.py" "$nets/data"
    cp "$work"/build-export/examples/lib*.so "$nets"
    : >"$names"
    # shellcheck disable=SC1091
    (cd "$nets" && . "$tables/networks.sh") || exit 1
    export_all "$nets/right"
}

accepted() # how many networks were exported; the others are named
{
    local net n=0
    while read -r net; do
        if [ "$(cat "$nets/right/$net.status")" = 0 ]; then
            n=$((n + 1))
        else
            echo "$net${seed:+, seed $seed,} is refused without a mutant: $(tail -n 1 "$nets/right/$net.log")" >&2
        fi
    done <"$names"
    echo $n
}

look_for_false_alarms() # SEEDS: every network with so many seeds, unchanged
{
    local all=0 good=0
    for seed in $(seq "$1"); do
        if [ "$seed" = 1 ]; then prepare_export; else make_networks; fi
        all=$((all + $(wc -l <"$names"))) good=$((good + $(accepted)))
    done
    echo "$good of $all networks accepted, unchanged"
    [ $good = $all ]
}

train() # FOLDER RECIPE [SECTION.KEY=VALUE...]
{
    local folder=$1 recipe=$2 sets=()
    shift 2
    for setting in "$@" ${seed:+train.seed=$seed data.seed=$seed}; do sets+=(--set "$setting"); done
    "$work/build-export/tools/qat-train" "$recipe" --threads 1 --out "$folder" ${sets[@]+"${sets[@]}"} >"$folder.log" 2>&1 ||
        { echo "training $folder fails: $(tail -n 1 "$folder.log")"; exit 1; }
}

network() # FOLDER RECIPE [SECTION.KEY=VALUE...] [-- OPTIONS OF qat-export...]
{
    local folder=$1 given=("$@") n=0
    while [ $n -lt $# ] && [ "${given[$n]}" != -- ]; do n=$((n + 1)); done
    train "${given[@]:0:$n}"
    {
        sed -n '/^\[plugin\]/,$s/^path = //p' "$2" | tr -d ' ' | tr , '\n' | sed '/./s/^/--plugin\n/'
        printf '%s\n' "${given[@]:$((n + 1))}"
    } >"$folder.options"
    echo "$folder" >>"$names"
}

export_one() # NETWORK FOLDER
{
    local options
    mapfile -t options < <(grep . "$1.options")
    timeout 120 "$work/build-export/tools/qat-export" "$1/last.ckpt" "$2/$1.qm" --threads 1 ${options[@]+"${options[@]}"} \
        >"$2/$1.log" 2>&1 && echo 0 >"$2/$1.status" || echo $? >"$2/$1.status"
}
export -f export_one
export work

export_all() # FOLDER
{
    rm -rf "$1"
    mkdir "$1"
    # shellcheck disable=SC2016
    (cd "$nets" && xargs -P 2 -I{} bash -c 'export_one "$1" "$2"' . {} "$1" <"$names")
}

# One network's word: refused, same, MISSED or BROKEN.
judge() # NETWORK
{
    local out=$nets/mutated/$1 status
    status=$(cat "$out.status")
    if [ "$status" = 0 ] && cmp -s "$out.qm" "$nets/right/$1.qm"; then
        echo same
    elif [ "$status" = 0 ]; then
        echo MISSED
    elif [ "$status" = 1 ] && grep -qE "$refusal" "$out.log" && [ ! -e "$out.qm" ]; then
        echo refused
    else
        echo BROKEN
    fi
}

judge_all() # NAME
{
    local net first='' refused=0 missed_by='' broken_by=''
    while read -r net; do
        case $(judge "$net") in
        refused) refused=$((refused + 1)) && first=${first:-$net} ;;
        MISSED) missed_by="$missed_by $net" ;;
        BROKEN) broken_by=${broken_by:-"$net, exit status $(cat "$nets/mutated/$net.status"): $(tail -n 1 "$nets/mutated/$net.log")"} ;;
        esac
    done <"$names"
    if [ -n "$missed_by" ]; then
        found MISSED "$1: $(wc -w <<<"$missed_by") other files, $refused refused:$missed_by"
    elif [ -n "$broken_by" ]; then
        found BROKEN "$1 on $broken_by"
    elif [ $refused = 0 ]; then
        found BROKEN "$1: no network's file changes"
    else
        found refused "$1 on $first and $((refused - 1)) more: $(grep -m1 -E "$refusal" "$nets/mutated/$first.log" | cut -c 13-)"
    fi
}

export_mutant() # NAME FILE EXPRESSION
{
    wants "$1" || return 0
    if only_looks "$1" "$2" "$3"; then return 0; fi
    prepare_export
    if ! apply "$2" "$3"; then
        found BROKEN "$1: the expression changes nothing in $2"
    elif ! build_export tools/qat-export; then
        found BROKEN "$1 does not compile: $(grep -m1 error: "$work/log")"
    else
        export_all "$nets/mutated"
        judge_all "$1"
    fi
    cp "$work/original" "$2"
}

freeze_mutant() # NAME FILE EXPRESSION
{
    mutant "$1" test_property "$2" "$3"
    export_mutant "$@"
}

if [ "${1-}" = --seeds ]; then
    look_for_false_alarms "$2"
    exit
fi
for table in engine freeze fold ranges weights multipliers windows graph inputs metadata epilogues file; do
    # shellcheck disable=SC1090
    . "$tables/$table.sh"
done
[ $((caught + missed)) -gt 0 ] || { echo "no mutant and no table has such a name:$wanted"; exit 2; }
if [ -n "$check" ] && [ "$missed" = 0 ]; then
    echo "ok - $caught expressions change their files"
elif [ -n "$check" ]; then
    echo "not ok - $missed expressions change nothing"
else
    echo "$caught noticed, $missed not"
fi
[ "$missed" -eq 0 ]
