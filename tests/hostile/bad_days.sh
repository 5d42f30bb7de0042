#!/usr/bin/env bash
# Bad days: every command with little memory (ulimit -v), on a full disk, in a read-only folder, with a full
# standard output, with closed descriptors, and in other locales. Each ends within 10 seconds, with exit status 0
# and the right files, or with 1 and a sentence; and nothing half written is left.
set -u
build=${QAT_BUILD_ROOT:?}
tools=$build/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
recipe=$QAT_SOURCE_ROOT/recipes/quickstart.ini
tflite=$(find "$QAT_SOURCE_ROOT/tests/golden/data" -name '*.tflite' | sort | head -n 1)
small="--set data.train_count=64 --set data.test_count=32 --set train.batch=16 --set model.filters=4,8
    --set model.strides=2 --set train.steps=4 --set quant.quant_delay=0 --set quant.range_log_every=1"
seconds=10
sanitized=$(meson introspect "$build" --buildoptions | tr '}' '\n' | sed -n 's/.*"name": "b_sanitize", "value": "\([^"]*\)".*/\1/p')
[ "${sanitized:-none}" = none ] || seconds=100

# ---------------------------------------------------------------- the commands
# Each writes into the folder $1, or prints only.
# shellcheck disable=SC2086
do_train() { qat-train "$recipe" $small --out "$1/run"; }
do_export() { qat-export good/run/last.ckpt "$1/m.qm" --samples 8; }
do_import() { qat-import "$tflite" "$1/i.qm"; }
do_eval() { qat-eval good/m.qm --data digits --samples 8 --dump-inputs "$1/inputs"; }
do_evalckpt() { qat-eval good/run/last.ckpt --samples 8; }
do_run() { qat-run good/m.qm --input good/inputs/0.npy --output "$1/y.npy" --dump-tensors "$1/tensors"; }
do_bench() { qat-bench good/m.qm --runs 2; }
do_inspect() { qat-inspect good/m.qm --graph; }
do_plot() { qat-inspect good/i.qm --plot "$1/plots"; } # the smallest model: each picture takes its time
# shellcheck disable=SC2086
do_sweep() { qat-sweep "$recipe" $small --verify 8 --out "$1/sweep"; }
writers="train export import eval run plot sweep"
printers="evalckpt bench inspect"
all="$writers $printers"
"$tools/qat-inspect" --help | grep -q -- --plot || writers=${writers/plot/}

# attempt <name> <folder>: run it, at most $seconds; its exit status, or 124, or that of a signal
attempt() {
    # shellcheck disable=SC2086
    timeout -k 1 $seconds env "PATH=$tools:$PATH" ${locale:+LOCPATH=$work/locale LC_ALL=$locale} bash -c "recipe='$recipe' tflite='$tflite' small='${small//$'\n'/ }'
        $(declare -f "do_$1"); ${limit:-:}; do_$1 '$2'"
}

# half_written <folder>: names what is not whole
half_written() {
    find "$1" -name '*.tmp' -o -name '*.part' -o -name '*.new'
    find "$1" \( -name '*.qm' -o -name '*.ckpt' \) -print | while read -r file; do
        "$tools/qat-inspect" "$file" >/dev/null 2>&1 || echo "$file"
    done
    find "$1" -name '*.png' -print | while read -r file; do
        tail -c 8 "$file" | grep -q IEND || echo "$file"
    done
    find "$1" -name '*.csv' -print | while read -r file; do
        [ -z "$(tail -c 1 "$file")" ] || echo "$file"
    done
}

# ends <what> <name> <folder> <expected: any, or a part of the message>: judges the status and what is left
ends() {
    case $status in
    0) [ "$4" = any ] || { not_ok "$1: $2 ends well"; return; } ;;
    130) # where not even one more thread can be started, OpenBLAS says so and ends the program, before main
        if ! grep -q '^OpenBLAS .*failed' err.txt; then
            not_ok "$1: $2 was interrupted"
            return
        fi
        ;;
    1 | 127) # 127: the loader, which has a sentence of its own
        if ! grep -qE '^[^ ]*qat-[a-z]+: .' err.txt; then
            not_ok "$1: $2 says nothing: $(tail -n 1 err.txt)"
            return
        fi
        if [ "$4" != any ] && ! grep -qF -- "$4" err.txt; then
            not_ok "$1: $2 does not say '$4': $(tail -n 1 err.txt)"
            return
        fi
        ;;
    124 | 137)
        not_ok "$1: $2 does not end in $seconds seconds"
        return
        ;;
    *)
        not_ok "$1: $2 ends with status $status: $(tail -n 1 err.txt)"
        return
        ;;
    esac
    left=$(half_written "$3" | head -n 3)
    if [ -z "$left" ]; then ok "$1: $2 ($status) $(tail -n 1 err.txt | cut -c 1-120)"; else
        not_ok "$1: $2 leaves half written: $left"
    fi
}

mkdir good
for name in train export import eval; do
    check "a good day: $name" attempt $name good
done

# ---------------------------------------------------------------- little memory
if [ "${sanitized:-none}" != none ]; then
    echo "SKIP little memory: the sanitizers need terabytes of addresses"
else
    for kilobytes in 65536 150000 300000; do
        for name in $all; do
            rm -rf out && mkdir out
            limit="ulimit -v $kilobytes" attempt $name out >out.txt 2>err.txt
            status=$?
            ends "$kilobytes kB of memory" $name out any
        done
    done
fi

# ---------------------------------------------------------------- disks
full=out.full
mkdir $full
if mount -t tmpfs -o size=64k tmpfs $full 2>/dev/null; then
    trap 'umount "$work/$full" 2>/dev/null; rm -rf "$work"' EXIT
    cat /dev/zero >$full/fill 2>/dev/null
    for name in $writers; do
        attempt $name $full >out.txt 2>err.txt
        status=$?
        ends "a full disk" $name $full "No space left on device"
        find $full -mindepth 1 ! -name fill -delete
    done
    if mount -o remount,ro $full 2>/dev/null; then
        for name in $writers; do
            attempt $name $full >out.txt 2>err.txt
            status=$?
            ends "a read-only folder" $name $full "Read-only file system"
        done
    fi
    umount $full
else
    echo "SKIP a full disk and a read-only folder: no tmpfs can be mounted here"
fi
if [ -c /dev/full ]; then
    for name in $all; do
        rm -rf out && mkdir out
        attempt $name out >/dev/full 2>err.txt
        status=$?
        expected="cannot write to standard output"
        [ $name = run ] && expected=any # it prints nothing
        ends "a full standard output" $name out "$expected"
    done
fi

# ---------------------------------------------------------------- closed descriptors
same_files() { # same_files <what> <folder> <folder of a good day>: the same files, apart from the clock's
    find "$2" "$3" \( -name times.csv -o -name '*.log' -o -name '*.out' -o -name 'results.*' \) -delete
    difference=$(diff -rq "$2" "$3" | head -n 1)
    if [ -z "$difference" ]; then ok "$1: the files of a good day"; else not_ok "$1: $difference"; fi
}
mkdir good_all
for name in $all; do
    mkdir "good_$name"
    check "a good day: $name" attempt $name "good_$name"
    cp out.txt "good_$name.txt"
    cp -r "good_$name/." good_all
done
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
    for name in $writers; do
        rm -rf out && mkdir out
        : >err.txt
        eval "attempt $name out $closed" >shell.txt 2>&1
        status=$?
        ends "closed: $closed" $name out any
        [ $status = 0 ] || not_ok "closed: $closed: $name fails"
        same_files "closed: $closed: $name" out "good_$name"
    done
done

# ---------------------------------------------------------------- locales
if ! command -v localedef >/dev/null || [ ! -d /usr/share/i18n/locales ]; then
    echo "SKIP other locales: no localedef, or no definitions of locales (Debian package locales)"
    exit $failed
fi
mkdir locale
locales='de_DE.UTF-8 tr_TR.ISO-8859-9 ps_AF.UTF-8'
locales=$(sanitized "$locales" "$locales fr_FR.ISO-8859-1 ru_RU.KOI8-R pt_BR.UTF-8 fa_IR.UTF-8 ja_JP.EUC-JP")
for locale in $locales; do
    localedef -i "${locale%%.*}" -f "${locale#*.}" "locale/$locale" >localedef.txt 2>&1
    if [ ! -d "locale/$locale" ]; then # its status is that of warnings too
        echo "SKIP locale $locale: localedef could not make it: $(tail -n 1 localedef.txt)"
        continue
    fi
    rm -rf out && mkdir out
    bad=
    for name in $all; do
        attempt $name out >out.txt 2>err.txt || bad="$bad $name"
        case $name in # what they print has no seconds in it
        evalckpt | inspect) cmp -s out.txt "good_$name.txt" || bad="$bad $name prints other text;" ;;
        esac
    done
    if [ -z "$bad" ]; then ok "$locale: every command"; else not_ok "$locale: $bad"; fi
    same_files "$locale" out good_all
done
exit $failed
