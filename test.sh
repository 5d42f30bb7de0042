#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test three times over:
#   build           release, all tests
#   build-sanitize  AddressSanitizer and UndefinedBehaviorSanitizer, all tests but those that say the same of every build
#   build-minimal   hard dependencies only: no threads, no SIMD, no JPEG, no ONNX, no plots, no Check; it has to build and work
#   build-debug     with the benchmarks, and build-clang: not optimized; these have to build without warnings
# and the integer engine alone, where the cross compilers are to be had:
#   build-aarch64-linux-gnu, build-arm-linux-gnueabihf   its tests under qemu, and the models of the
#                                                        tests of `build` with their answers
#   build-cortex-m4                                      its core, without floating-point helpers
# The last line is `N passed, N failed`, with `, N skipped` behind it where something was skipped; what
# was skipped, and why, is listed before it.
set -u
cd "$(dirname "$0")"
case $PWD in
*[[:space:]]*)
    echo "$PWD: the tests need a path without blanks"
    exit 1
    ;;
esac
. .ci/packages.sh
# shellcheck disable=SC2086
ensure_packages $BUILD_PACKAGES $TEST_PACKAGES
# shellcheck disable=SC2086
try_packages $CROSS_PACKAGES
# shellcheck disable=SC2086
try_packages $MPI_PACKAGES $STYLE_PACKAGES

passed=0
failed=0
skipped=0
logs=build/test-logs

die() {
    echo "$1"
    echo "$passed passed, $((failed + 1)) failed"
    exit 1
}

# configure <folder> <meson options>
configure() {
    folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then
        [ "$1" = --cross-file ] && shift 2 # is chosen once, at setup
        meson configure "$folder" "$@" >/dev/null
    else
        meson setup "$folder" "$@" >"/tmp/qat-setup.$$" 2>&1 ||
            { cat "/tmp/qat-setup.$$"; rm -f "/tmp/qat-setup.$$"; die "meson setup $folder failed"; }
        rm -f "/tmp/qat-setup.$$"
    fi
}

build() {
    echo "== building $1"
    ninja -C "$1" >"$logs/$1.build.log" 2>&1 || { tail -n 60 "$logs/$1.build.log"; die "building $1 failed"; }
}

# Adds up what the test programs of a build printed: Check's own totals, `ok -`/`not ok -` lines of the
# scripts, and SKIP lines. A program that ended badly without saying so counts as one failure.
run_tests() {
    echo "== testing $1"
    meson test -C "$1" --no-rebuild --num-processes 2 --print-errorlogs "${@:2}" >>"$logs/$1.test.log" 2>&1
    status=$?
    text=$1/meson-logs/testlog.txt
    [ -f "$text" ] || { tail -n 20 "$logs/$1.test.log"; die "no tests ran in $1"; }
    counts=$(awk '
        /^[0-9]+%: Checks: / { gsub(",", ""); checks = $3; bad = $5 + $7; good += checks - bad; worse += bad }
        /^ok / { good++ }
        /^not ok / { worse++ }
        /^SKIP / { skip++ }
        END { print good + 0, worse + 0, skip + 0 }' "$text")
    read -r good worse skip <<<"$counts"
    [ "$status" = 0 ] || [ "$worse" -gt 0 ] || worse=1
    if [ "$worse" -gt 0 ]; then # meson's own log lacks tests that say `not ok` and end well
        { grep -E ':[FE]:|TIMEOUT|FAIL |ERROR' "$logs/$1.test.log"; grep '^not ok ' "$text"; } | sort -u | head -n 60
    fi
    grep '^SKIP ' "$text" | sort -u
    sed -n 's/^ok - replay /   replayed /p' "$text"
    echo "   $good passed, $worse failed, $skip skipped"
    passed=$((passed + good))
    failed=$((failed + worse))
    skipped=$((skipped + skip))
}

rm -rf "$logs"
mkdir -p "$logs"
# these warn of other things than the builds below, and take two minutes: so they come first
configure build-debug -Dbuildtype=debug -Dtests=disabled -Dbench=true
build build-debug
if command -v clang >/dev/null 2>&1; then
    CC=clang configure build-clang -Dbuildtype=debug -Dtests=disabled
    build build-clang
else
    echo "SKIP build-clang: no clang"
    skipped=$((skipped + 1))
fi
passed=$((passed + 1))

configure build -Dtests=enabled -Dpkgconfig.relocatable=true
build build
# models with the answers that these tests know, for the engine on other processors
models=$PWD/build/replay
rm -rf "$models"
mkdir -p "$models"
QAT_KEEP_MODELS=$models run_tests build --no-suite replay
QAT_REPLAY=$models run_tests build replay

# -O1: with -O2 the kernels take several times as long to compile, and no test is faster. What is undefined traps, and
# AddressSanitizer says where. Messages of UndefinedBehaviorSanitizer would say more, but their texts make the library
# four times as large, and each program takes 40 ms longer to start.
configure build-sanitize -Dtests=enabled -Dbuildtype=debug -Doptimization=1 \
    "-Dc_args=-g1 -fsanitize-undefined-trap-on-error" -Db_sanitize=address,undefined -Db_lundef=false
build build-sanitize
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:handle_sigill=1
run_tests build-sanitize -t 4 --no-suite once

configure build-minimal -Doptimization=1 -Dthreads=disabled -Dsimd=false -Djpeg=disabled -Dsound=disabled -Donnx=disabled \
    -Dplots=disabled -Dmpi=disabled -Dtests=disabled
build build-minimal
if build-minimal/tools/qat-train recipes/quickstart.ini --set train.steps=2 --set quant.quant_delay=0 \
    --set data.train_count=64 --set data.test_count=32 --out build-minimal/run --overwrite >"$logs/minimal.log" 2>&1 &&
    build-minimal/tools/qat-export build-minimal/run/last.ckpt build-minimal/run/m.qm --samples 16 \
        >>"$logs/minimal.log" 2>&1; then
    passed=$((passed + 1))
else
    cat "$logs/minimal.log"
    failed=$((failed + 1))
fi

# cross <name of a file in cross/> <program>... : the engine alone, if the programs are there
cross() {
    target=$1
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            echo "SKIP $target: no $program"
            skipped=$((skipped + 1))
            return
        fi
    done
    configure "build-$target" --cross-file "cross/$target.ini" -Dtraining=false
    build "build-$target"
    QAT_REPLAY=$models run_tests "build-$target"
}
cross aarch64-linux-gnu aarch64-linux-gnu-gcc qemu-aarch64
cross arm-linux-gnueabihf arm-linux-gnueabihf-gcc qemu-arm
cross cortex-m4 arm-none-eabi-gcc

if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]
