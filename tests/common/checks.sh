# Sourced by the end-to-end tests: a temporary folder to work in, and checks that print one `ok -` or
# `not ok -` line each. A script ends with `exit $failed`.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
export LC_ALL=C # numbers have a decimal point, and names are sorted by their bytes
# fontconfig keeps what it read of its settings; under the sanitizers that is a leak, and not ours
echo leak:libfontconfig >"$work/.leaks"
export LSAN_OPTIONS=suppressions=$work/.leaks:print_suppressions=0

# sanitized <in this case> <else>: under the sanitizers trainings are shorter, reach no accuracy, and fewer cases run
sanitized() {
    if [ "${QAT_SANITIZE:-none}" != none ]; then echo "$1"; else echo "$2"; fi
}

ok() {
    echo "ok - $1"
}

not_ok() {
    echo "not ok - $1"
    failed=1
}

check() { # check <what> <command...>: it succeeds
    what=$1
    shift
    if "$@" >out.txt 2>err.txt; then ok "$what"; else
        not_ok "$what"
        tail -n 5 out.txt err.txt
    fi
}

refuses() { # refuses <what> <exit status> <text of the message> <command...>
    what=$1 status=$2 text=$3
    shift 3
    "$@" >out.txt 2>err.txt
    got=$?
    if [ $got = "$status" ] && grep -qF -- "$text" err.txt; then
        ok "$what: $(head -n 1 err.txt | cut -c 1-200)"
    else
        not_ok "$what: exit status $got, wanted $status and '$text'"
        head -n 3 err.txt
    fi
}

same() { # same <what> <file> <file>
    if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1: $(cmp "$2" "$3" 2>&1)"; fi
}

has() { # has <what> <pattern> <file>
    if grep -qE -- "$2" "$3"; then ok "$1"; else
        not_ok "$1: no '$2' in"
        head -n 20 "$3"
    fi
}

judged_alike() { # judged_alike <checkpoint> <.qm of it> <recipe>: qat-eval has the same figures of both
    check "evaluation of the checkpoint" "$tools/qat-eval" "$1"
    exact=$(sed -n 's/^quantized *//p' out.txt)
    check "evaluation of the .qm" "$tools/qat-eval" "$2" --recipe "$3"
    engine=$(sed -n 's/^quantized *//p' out.txt)
    if [ -n "$exact" ] && [ "$exact" = "$engine" ]; then ok "both have the same figures: $exact"; else
        not_ok "checkpoint: '$exact', .qm: '$engine'"
    fi
}
