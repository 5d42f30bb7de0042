#!/usr/bin/env bash
# Fuzzes one reader under AddressSanitizer and UndefinedBehaviorSanitizer, by hand (needs clang, llvm):
# builds, runs, keeps what it found in a working folder for the next time, and prints how many
# executions there were, this time and in all, and which part of the reader's lines the inputs reach; less
# than 90 % of them (85 % of the recipe's) is a failure.
#
# usage: tests/fuzz/run.sh TARGET [EXECUTIONS]        fuzz_qm, fuzz_npy, ...; 100000
#   WORK      working folder, default build-fuzz/work: corpus, crashes, logs, the sum of executions
#   MAX_LEN   largest input, default 16384 bytes (65536 is the most a target takes)
# A crash, leak, read past the end, input of more than 10 s, allocation of more than 64 MB or memory of
# more than 1 GB ends the run; the input lies in WORK/TARGET-found.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:?target: a name of a case of reader_files below, such as fuzz_qm}
executions=${2:-100000}
work=${WORK:-build-fuzz/work}
max_len=${MAX_LEN:-16384}
corpus=tests/fuzz/corpus/$target
# A small quarantine: with the usual 256 MB of freed memory, fresh pages take half of the time.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=8:malloc_context_size=5
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# configure FOLDER OPTION...: clang, no threads: an input takes the same way each time
configure() {
    folder=$1
    shift
    [ -f "$folder/build.ninja" ] || CC=clang meson setup "$folder" -Dthreads=disabled -Dtests=enabled \
        -Dbuildtype=debugoptimized -Db_lundef=false "$@" >"$folder.log" 2>&1 ||
        { cat "$folder.log"; exit 1; }
    rm -f "$folder.log"
}

# make FOLDER PROGRAM
make() {
    ninja -C "$1" "$2" >"$1.log" 2>&1 || { tail -n 40 "$1.log"; exit 1; }
    rm -f "$1.log"
}

# The reader's own files, as a pattern.
reader_files() {
    case $1 in
    fuzz_qm) echo '^lib/(infer/(model|ops)/[a-z0-9_]+|convert/qm_read)[.]c$' ;;
    fuzz_onnx) echo '^lib/foreign/' ;;
    fuzz_tflite) echo '^lib/convert/tflite/' ;;
    fuzz_checkpoint) echo '^lib/(checkpoint/(checkpoint(_read|_sections)?|restore)|plugin/plugin_names|autograd/graph/text_read)[.]c$' ;;
    fuzz_npy) echo '^(lib/base/files/np[yz]|datasets/readers/npy)[.]c$' ;;
    fuzz_idx) echo '^datasets/readers/(idx|cifar)[.]c$' ;;
    fuzz_coco) echo '^datasets/readers/coco(_json)?[.]c$' ;;
    fuzz_recipe) echo '^lib/recipe/(arch|check|effect|nearest|quant|recipe|text|value)[.]c$' ;; # keys.c is a table
    fuzz_csv) echo '^datasets/readers/table[.]c$' ;;
    fuzz_events) echo '^lib/board/event_file[.]c$' ;;
    fuzz_png) echo '^datasets/pictures/picture_png[.]c$' ;;
    fuzz_jpeg) echo '^datasets/pictures/picture_jpeg[.]c$' ;;
    fuzz_bmp) echo '^datasets/pictures/picture_bmp[.]c$' ;;
    fuzz_pnm) echo '^datasets/pictures/picture_pnm[.]c$' ;;
    fuzz_labels) echo '^tools/import_labels[.]c$' ;;
    fuzz_list) echo '^datasets/readers/(list|folder|classes|files)[.]c$' ;;
    fuzz_shards) echo '^datasets/packed/(tar|tar_samples|tfrecord|example|index|shards|packed)[.]c$' ;;
    fuzz_wav) echo '^datasets/sounds/wave_read[.]c$' ;;
    esac
}

# The least share of their lines, in percent. The recipe's reader has a message for each pair of keys that
# do not go together, and the lists of `qat-train --keys`, which no recipe reaches.
least_share() {
    case $1 in
    fuzz_recipe) echo 85 ;;
    fuzz_events) echo 75 ;; # failing disks are not among its inputs
    *) echo 90 ;;
    esac
}

fuzz() {
    mkdir -p "$work/$target" "$work/$target-found"
    nice -n 15 build-fuzz/tests/fuzz/"$target" -max_len="$max_len" -runs="$executions" -timeout=10 \
        -malloc_limit_mb=64 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -entropic=0 \
        -artifact_prefix="$work/$target-found/" "$work/$target" "$corpus" >"$work/$target.log" 2>&1 ||
        { tail -n 40 "$work/$target.log"; echo "found: see $work/$target-found"; exit 1; }
    done=$(awk '/stat::number_of_executed_units/ { print $2 }' "$work/$target.log")
    echo "$done" >>"$work/$target.executions"
    echo "$target: $done executions, $(awk '{ n += $1 } END { print n }' "$work/$target.executions") in all"
}

coverage() {
    profile=$work/$target.profraw
    LLVM_PROFILE_FILE=$profile build-coverage/tests/fuzz/"${target}_replay" "$corpus" "$work/$target"
    llvm-profdata merge -o "$work/$target.profdata" "$profile"
    llvm-cov report build-coverage/tests/fuzz/"${target}_replay" -instr-profile="$work/$target.profdata" |
        awk -v files="$(reader_files "$target")" -v root="^${PWD#/}/" -v least="$(least_share "$target")" '
            { sub(root, "", $1) }
            $1 ~ files {
                printf "  %-40s %5d lines, %4d missed, %s\n", $1, $8, $9, $10
                lines += $8
                missed += $9
            }
            END {
                if (!lines) { print "no lines of the reader in the report"; exit 1 }
                share = 100 * (lines - missed) / lines
                printf "line coverage: %d of %d lines, %.1f %%\n", lines - missed, lines, share
                if (share < least) { printf "less than %d %%\n", least; exit 1 }
            }'
}

configure build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Dc_args=-fsanitize=float-cast-overflow
configure build-coverage -Dc_args='-fprofile-instr-generate -fcoverage-mapping' \
    -Dc_link_args=-fprofile-instr-generate
make build-fuzz "tests/fuzz/$target"
make build-coverage "tests/fuzz/${target}_replay"
fuzz
coverage
