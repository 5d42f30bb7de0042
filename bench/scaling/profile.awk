# From the timeline of one of two ranks with a shard each (QAT_RANKS_TIMELINE), the exchanges of its last whole step, for
# bench/scaling/model.awk. A step ends with the sum of counts, 24 bytes. How long a part of the step computes is the least of
# the steps that have as many sums.
BEGIN { FS = "," }
NR == 1 { next }
$2 > 0 && $4 != "" { waits++; wait_from[waits] = $4; wait_end[waits] = $5 }
$2 == 1 { n++; line[n] = "bucket " $6 / 2; at[n] = last_bucket = $3 } # 4 bytes of the half that goes to the other
$2 == 0 {
    n++
    line[n] = "sum " $6
    sums++
    part[sums] = $3 - ended - waited(ended, $3)
    ended = $5
}
$2 == 0 && $6 == 24 {
    if (began) keep()
    n = sums = waits = 0
    split("", at)
    began = ended
}
function waited(from, to,    i, a, b, time) { # for gradients, between two sums
    for (i = 1; i <= waits; i++) {
        a = wait_from[i] > from ? wait_from[i] : from
        b = wait_end[i] < to ? wait_end[i] : to
        if (b > a) time += b - a
    }
    return time + 0
}
function keep(    i) {
    if (kept_sums != sums) split("", least)
    kept_sums = sums
    for (i = 1; i <= sums; i++) if (!(i in least) || part[i] < least[i]) least[i] = part[i]
    kept_n = n
    for (i = 1; i <= n; i++) {
        kept[i] = line[i]
        kept_left[i] = i in at ? sprintf(" %.4f", (last_bucket - at[i]) / (ended - began)) : ""
    }
}
END {
    for (i = 1; i <= kept_sums; i++) all += least[i]
    for (i = 1; i <= kept_n; i++) print kept[i] (kept[i] ~ /^sum/ ? sprintf(" %.6f", least[++k] / all) : kept_left[i])
}
