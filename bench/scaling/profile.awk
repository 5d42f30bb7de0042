# From the timeline of one of two ranks with a shard each (QAT_RANKS_TIMELINE), the exchanges of its last whole step, for
# bench/scaling/model.awk. A step ends with the sum of counts, 24 bytes.
BEGIN { FS = "," }
NR > 1 && $2 == 0 && !began { began = $3 }
NR > 1 && $2 == 0 { n++; line[n] = "sum " $6; last = $3 }
NR > 1 && $2 == 1 { n++; line[n] = "bucket " $6 / 2; at[n] = $3; last = $3 } # 4 bytes of the half that goes to the other
NR > 1 && $2 == 0 && $6 == 24 {
    delete kept; delete kept_left
    for (i = 1; i <= n; i++) {
        kept[i] = line[i]
        kept_left[i] = i in at ? (last_bucket(n) - at[i]) / ($5 - began) : ""
    }
    kept_n = n
    n = 0
    delete at
    began = $5
}
function last_bucket(n,    i, time) {
    for (i = 1; i <= n; i++) if (i in at) time = at[i]
    return time
}
END { for (i = 1; i <= kept_n; i++) print kept[i] (kept_left[i] == "" ? "" : " " sprintf("%.4f", kept_left[i])) }
