#!/usr/bin/env bash
# How many JPEGs a second are decoded from shards, beside libjpeg-turbo's own djpeg (package libjpeg-turbo-progs) in as
# many processes as there are processors, on the same pictures. Both decode to RGB with the accurate integer DCT. The
# best of ROUNDS rounds is taken of each, in turn; the last line is the ratio. Pictures are large, so that starting a
# process for each one matters little to djpeg.
# Usage: bench/imagenet/decode_rate.sh     SIDE=1024, PICTURES=240, ROUNDS=5, JOBS (default: all processors)
set -eu
cd "$(dirname "$0")/../.."
tools=$PWD/${QAT_TOOLS:-build/tools}
jobs=${JOBS:-$(nproc)} pictures=${PICTURES:-240}
command -v djpeg >/dev/null || { echo "no djpeg (package libjpeg-turbo-progs)" >&2 && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$tools/qat-data" pack patterns set --only train --quality 90 --set "data.height=${SIDE:-1024}" --set data.classes=10 \
    --set "data.train_count=$pictures" >/dev/null
mkdir files
for shard in set/*.tar; do tar xf "$shard" -C files; done
find files -name '*.jpg' | sort >list
better() { awk -v a="$1" -v b="$2" 'BEGIN { print (a > b ? a : b) }'; }
ours=0 theirs=0
for _ in $(seq "${ROUNDS:-5}"); do
    now=$("$tools/qat-data" check set --only train --jobs "$jobs" | sed -n 's/.*, \([0-9]*\) pictures\/s.*/\1/p')
    ours=$(better "$ours" "$now")
    start=$(date +%s.%N)
    xargs -P "$jobs" -n 1 djpeg -dct int -ppm -outfile /dev/null <list
    theirs=$(better "$theirs" "$(awk -v a="$start" -v b="$(date +%s.%N)" -v n="$pictures" 'BEGIN { print n / (b - a) }')")
done
awk -v ours="$ours" -v theirs="$theirs" -v jobs="$jobs" -v side="${SIDE:-1024}" 'BEGIN {
    printf "pictures of %d x %d pixels, %d at a time\n", side, side, jobs
    printf "qat-data: %.1f pictures/s\ndjpeg:    %.1f pictures/s\nratio:    %.2f\n", ours, theirs, ours / theirs }'
