#!/usr/bin/env bash
# A run over a set several times as large as data.memory takes no more memory than one over a small part of it.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

pictures=$(sanitized 600 8000) as="--quality 95"
if ! "$tools/qat-data" pack patterns one.set $as --set data.train_count=1 --set data.test_count=1 >out.txt 2>&1; then
    has "a build that writes no JPEG" "there was no libjpeg-turbo" out.txt
    pictures=$(sanitized 600 3200) as= # PNGs are larger
fi
check "a set" "$tools/qat-data" pack patterns set $as --shard-size 16M --set "data.train_count=$pictures" \
    --set data.test_count=40 --set data.classes=10
bytes=$(cat set/train-*.tar | wc -c)

cat >r.ini <<'END'
[data]
kind = tar
path = set
height = 64
memory = 64M
threads = 2
crop_area = 0.3, 1
check = no
[model]
arch = convnet
filters = 4
strides = 4
[train]
epochs = 1
batch = 32
END
peak() { # peak <folder> <option...>: trains, and prints the most KiB that were resident
    "$tools/qat-train" r.ini --threads 1 --out "$@" >"$1.txt" 2>&1 &
    pid=$!
    most=0
    while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$pid/status 2>/dev/null) && [ -n "$now" ]; do
        most=$now
        sleep 0.05
    done
    if wait $pid; then echo "$most"; else echo 999999999; fi
}
small=$(peak small --set data.train_count=$((pictures / 10)))
large=$(peak large)
has "an epoch of the small part" "^step [0-9]*/$((pictures / 320))" small.txt
has "an epoch of the whole set" "^step [0-9]*/$((pictures / 32))" large.txt
if [ "${QAT_SANITIZE:-none}" = none ]; then
    check "the set has $bytes bytes, more than 3 times 64 MiB" test "$bytes" -gt $((3 * 64 << 20))
    check "its run took at most 8 MiB more than that of a tenth ($large, $small KiB)" test "$large" -le $((small + 8192))
    check "and less than 128 MiB" test "$large" -lt $((128 << 10))
fi
check "fewer batches fit into 5 MiB" "$tools/qat-train" r.ini --set train.steps=2 --set data.memory=5M --out two
refuses "no two batches fit into 3 MiB" 1 "two batches of 32 samples take 4 MiB of memory, but data.memory allows 3 MiB" \
    "$tools/qat-train" r.ini --set data.memory=3 --out one
refuses "a wrong amount" 2 "data.memory = 3K: expected MiB in 1..1073741824, such as 512, 512M or 2G" \
    "$tools/qat-train" r.ini --set data.memory=3K
exit $failed
