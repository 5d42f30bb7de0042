#!/usr/bin/env bash
# qat-data: the same shards for any number of jobs; training on shards equals training on what was packed, for any
# number of readers and after a resume; broken pictures, truncated archives, interrupted packing.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

counts="--set data.train_count=600 --set data.test_count=80"

# ---------------------------------------------------------------- packing
# shellcheck disable=SC2086
pack() { # pack <folder> <option...>
    "$tools/qat-data" pack shapes "$@" $counts --shard-size 256K
}
check "pack" pack one --jobs 1
has "pack tells what it wrote" "^train: 600 pictures in [0-9]* shards of [0-9]* bytes together" out.txt
check "pack with 4 jobs" pack four --jobs 4
check "the same bytes" diff -r one four
check "no more than 256 KiB" test -z "$(find one -size +256k)"
check "tar reads the shards" tar tf one/train-000001.tar
check "the list" "$tools/qat-data" list one
has "the list names counts and classes" "^tar one: 600 training pictures, 80 test pictures, 10 classes .disc 68, " out.txt
check "the check" "$tools/qat-data" check one
has "the check counts" "^training: 600 pictures, 0 broken; 32 x 32 to 32 x 32 pixels" out.txt
check "shards are packed again" "$tools/qat-data" pack tar:one again --shard-size 256K
check "to the same bytes" diff -r one again
refuses "shards that are there" 2 "one/train-000000.tar is there already (--overwrite replaces it)" pack one
check "--overwrite" pack four --overwrite
check "leaves the same" diff -r one four
refuses "into the folder of the data" 2 "pack them into another one" "$tools/qat-data" pack tar:one one --overwrite
check "nothing was lost" diff -r one four
mkdir -p parts/train
cp one/train-000000.* one/val-* parts && cp one/train-000001.* parts/train
refuses "into the folder of some of the data" 2 "pack them into another one" \
    "$tools/qat-data" pack tar:parts parts/train --overwrite
check "nothing was lost there" cmp one/train-000001.tar parts/train/train-000001.tar
check "the splits one after the other: training" pack apart --only train
check "and test" pack apart --only test
check "are the same as both together" diff -r one apart
touch apart/train-1.tar.gz apart/val-0.tarball apart/train-1.names.csv
printf 'mine\n' >apart/classes.txt
refuses "a classes.txt that is there" 2 "apart/classes.txt is there already" \
    "$tools/qat-data" pack shapes apart --only test --set data.test_count=80
check "--overwrite of a split" pack apart --only test --overwrite
check "leaves other files alone" test -e apart/train-1.tar.gz -a -e apart/val-0.tarball -a -e apart/train-1.names.csv
rm apart/train-1.* apart/val-0.tarball
check "and the other split" diff -r one apart
check "one split" "$tools/qat-data" pack one small --only train --resize 16
has "is one shard, smaller" "^train: 600 pictures in 1 shard" out.txt
check "has no test split" test ! -e small/val-000000.tar
check "its size" "$tools/qat-data" check small --only train
has "is 16" "16 x 16 to 16 x 16" out.txt
mkdir -p mixed/train/cat mixed/train/dog mixed/val
cp one/train-000000.tar mixed/x.tar
refuses "a folder of classes with an archive beside it" 1 "mixed is taken as kind folder" "$tools/qat-data" list mixed
touch records-00000-of-00001 && mkdir records && mv records-00000-of-00001 records/train-00000-of-00001
refuses "a folder of TFRecords" 1 "records is taken as kind tfrecord" "$tools/qat-data" list records
refuses "boxes" 1 "only pictures with a class can be packed, not pictures with boxes" \
    "$tools/qat-data" pack scenes boxes --set data.train_count=2 --set data.test_count=2
refuses "a size" 2 "expected bytes in 64K..1024G" "$tools/qat-data" pack one two --shard-size 5
refuses "a size that no number holds" 2 "expected bytes in 64K..1024G" \
    "$tools/qat-data" pack one two --shard-size 18014398509482048K
mkdir -p "odd/[2024]" && cp one/* "odd/[2024]" && cp -r one list
check "brackets in a path" "$tools/qat-data" list "odd/[2024]"
has "are no pattern" "600 training pictures, 80 test pictures" out.txt
check "a folder with the name of a kind" "$tools/qat-data" list list
has "is a folder" "600 training pictures, 80 test pictures" out.txt
rm -r odd list
refuses "a split" 2 "expected train or test" "$tools/qat-data" list one --only val
refuses "a command" 2 "expected pack, list or check" "$tools/qat-data" unpack one
refuses "an option of pack" 2 "no option of pack" "$tools/qat-data" list one --resize 3

# ---------------------------------------------------------------- training
printf '[data]\nkind = shapes\n[model]\narch = convnet\nfilters = 4\n[train]\nsteps = 200\nbatch = 20\neval_every = 20\n' >r.ini
packed="--set data.kind=tar --set data.path=one --set data.height=32"
# shellcheck disable=SC2086
{
    check "training on what is drawn" "$tools/qat-train" r.ini $counts --out drawn
    check "training on the shards" "$tools/qat-train" r.ini $packed --out packed
    check "has the same log" cmp drawn/log.csv packed/log.csv
    for readers in 1 3 8; do
        check "with $readers readers" "$tools/qat-train" r.ini $packed --out readers --overwrite \
            --set data.threads=$readers --set data.prefetch=$((9 - readers))
        check "the same checkpoint" cmp packed/last.ckpt readers/last.ckpt
    done
    for _ in 1 2 3 4 5; do # again where the run was over before the signal came
        rm -rf parts
        "$tools/qat-train" r.ini $packed --out parts >parts.txt 2>&1 &
        pid=$!
        for _ in $(seq 400); do
            [ -f parts/log.csv ] && [ "$(wc -l <parts/log.csv)" -gt 1 ] && break
            sleep 0.02
        done
        kill -TERM $pid
        wait $pid
        grep -q '^stopped at step' parts.txt && break
    done
    has "a run that is stopped" '^stopped at step [0-9]+ of 200' parts.txt
    check "and resumed with 5 readers" "$tools/qat-train" r.ini $packed --out parts --resume --set data.threads=5
    check "has the same checkpoint" cmp packed/last.ckpt parts/last.ckpt
    check "and log" cmp packed/log.csv parts/log.csv
}

# ---------------------------------------------------------------- broken pictures
cp -r one broken
rm broken/*.idx
for shard in 0 1; do # six pictures of 600: another signature
    for line in 3 9 20; do
        offset=$(sed -n "${line}s/ .*//p" one/train-00000$shard.tar.idx)
        printf 'broken' | dd of=broken/train-00000$shard.tar bs=1 seek="$offset" conv=notrunc status=none
    done
done
"$tools/qat-data" check broken >broken.txt 2>&1
check "broken pictures: exit status 1" test $? = 1
has "they are counted" "^training: 600 pictures, 6 broken" broken.txt
check "all are named" test "$(grep -c '^broken: broken/train-00000[01].tar/[0-9]*.png: not a picture' broken.txt)" = 6
# shellcheck disable=SC2086
refuses "a run on them" 1 "6 of 600 pictures of tar broken/train cannot be read" \
    "$tools/qat-train" r.ini --set data.kind=tar --set data.path=broken --out x
check "a run without them" "$tools/qat-train" r.ini --set data.kind=tar --set data.path=broken --set data.skip_broken=yes --out x
has "says how many" "skipped: 6 pictures that cannot be read" <(cat out.txt err.txt)
refuses "packing them" 1 "not a picture" "$tools/qat-data" pack broken whole
check "packing without them" "$tools/qat-data" pack broken whole --skip-broken --overwrite
has "counts them" "^train: 594 pictures .*; 6 left out" out.txt
check "names them" test "$(grep -c '^left out: broken/train' err.txt out.txt | awk -F: '{ n += $2 } END { print n }')" = 6
check "what is left is whole" "$tools/qat-data" check whole

# ---------------------------------------------------------------- what is cut off
cp -r one cut
truncate -s 100000 cut/train-000001.tar
refuses "a truncated shard" 1 "cut/train-000001.tar: truncated at byte 100000" "$tools/qat-data" list cut
touch cut/PACKING
refuses "packing that did not end" 1 "packing began but did not end here" "$tools/qat-data" list cut
check "begins anew" pack cut
check "and is whole then" diff -r one cut
printf 'train\n' >cut/PACKING
refuses "packing of one split that did not end, and the other one" 1 "packing of its train shards began but did not end" \
    pack cut --only test --overwrite
rm cut/PACKING
"$tools/qat-data" pack shapes killed --set data.train_count=8000 --shard-size 64K >/dev/null 2>&1 &
pid=$!
for _ in $(seq 600); do
    [ -e killed/train-000000.tar ] && break
    sleep 0.05
done
refuses "packing into it beside it" 1 "another program is writing there" pack killed
kill -9 $pid
wait $pid 2>/dev/null
refuses "packing that was killed" 1 "packing began but did not end here" "$tools/qat-data" list killed
check "leaves whole shards" tar tf killed/train-000000.tar
check "begins anew after a kill" pack killed
check "and leaves nothing else" diff -r one killed
exit $failed
