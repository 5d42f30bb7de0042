# From the timeline of one of two ranks with a shard each (QAT_RANKS_TIMELINE), the exchanges of its last whole step, for
# bench/scaling/model.awk. A step ends with the sum of counts, 24 bytes.
BEGIN { FS = "," }
NR == 1 { next }
$2 == 1 { n++; line[n] = "bucket " $6 / 2; at[n] = last_bucket = $3 } # 4 bytes of the half that goes to the other
$2 == 0 { n++; line[n] = "sum " $6 }
$2 == 0 && $6 == 24 {
    for (i = 1; began && i <= n; i++) kept[i] = line[i] (i in at ? sprintf(" %.4f", (last_bucket - at[i]) / ($5 - began)) : "")
    if (began) kept_n = n
    n = 0
    split("", at)
    began = $5
}
END { for (i = 1; i <= kept_n; i++) print kept[i] }
