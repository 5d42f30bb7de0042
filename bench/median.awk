# For benchmarks whose files take turns.

function median(list,    n, v, i, j, x) { # of numbers with blanks between them
    n = split(list, v, " ")
    for (i = 2; i <= n; i++) {
        x = v[i] + 0
        for (j = i - 1; j > 0 && v[j] + 0 > x; j--) v[j + 1] = v[j]
        v[j + 1] = x
    }
    return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
}
