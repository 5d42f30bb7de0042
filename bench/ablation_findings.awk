# What Jacob et al. read from tables 4.7 and 4.8, found in a grid of bits or not. Input, a line each run that is
# done: bits of weights, bits of activations, seed, float figure, integer figure. The change of a cell is
# integer / float - 1 in percent, with the float network of the same seed; a statement is found where every
# seed shows it, and "found on average" where only the mean of all seeds does.

{
    change[$1, $2, $3] = 100 * ($5 - $4) / $4
    if ($3 > seeds) seeds = $3
    if (!($1 in level)) level[$1]
}

function have(w, a, s) { return (w, a, s) in change }

# Mean over pairs of cells with bits exchanged: few bits for weights minus few bits for activations.
function sensitivity(s,    w, a, sum, n) {
    for (w in level) for (a in level)
        if (w + 0 < a + 0 && have(w, a, s) && have(a, w, s)) { sum += change[w, a, s] - change[a, w, s]; n++ }
    return n ? sum / n : "none"
}

# Mean over sums of bits that an even cell has: that cell minus the mean of the uneven ones.
function balance(s,    b, d, sum, n, others, m) {
    for (b in level) {
        others = m = 0
        for (d = 1; d < 8; d++) {
            if (have(b + d, b - d, s)) { others += change[b + d, b - d, s]; m++ }
            if (have(b - d, b + d, s)) { others += change[b - d, b + d, s]; m++ }
        }
        if (m && have(b, b, s)) { sum += change[b, b, s] - others / m; n++ }
    }
    return n ? sum / n : "none"
}

# The worst cell of 8 and 7 bits.
function worst_of_many_bits(s,    w, a, worst) {
    worst = "none"
    for (w = 7; w <= 8; w++) for (a = 7; a <= 8; a++)
        if (have(w, a, s) && (worst == "none" || change[w, a, s] < worst)) worst = change[w, a, s]
    return worst
}

function row_mean(w, s,    a, sum, n) {
    for (a in level) if (have(w, a, s)) { sum += change[w, a, s]; n++ }
    return n ? sum / n : "none"
}

# From 5 bits of weights to 4, minus all that is lost from 8 to 5.
function cliff(s,    four, five, eight) {
    four = row_mean(4, s); five = row_mean(5, s); eight = row_mean(8, s)
    return four == "none" || five == "none" || eight == "none" ? "none" : (four - five) - (five - eight)
}

function measure(what, s) {
    if (what == 5) return have(8, 8, s) ? change[8, 8, s] : "none"
    return what == 1 ? sensitivity(s) : what == 2 ? worst_of_many_bits(s) : what == 3 ? balance(s) : cliff(s)
}

# A statement that holds where its measure is above (or below) a bound.
function report(what, text, above, bound,    s, v, n, all, sum, list, verdict) {
    all = 1
    for (s = 1; s <= seeds; s++) {
        v = measure(what, s)
        if (v == "none") continue
        n++; sum += v
        list = list sprintf("%s%+.2f", n > 1 ? ", " : "", v)
        if (above ? v <= bound : v >= bound) all = 0
    }
    if (!n) { print "* " text ": not enough cells"; return }
    verdict = all ? "found" : (above ? sum / n > bound : sum / n < bound) ? "found on average" : "not found"
    printf "* %s: %s (%s)\n", text, verdict, list
}

END {
    report(1, "weights are more sensitive than activations (points, few bits for weights minus few for activations)", 0, 0)
    report(2, "8 and 7 bits are like float (percent, the worst of the four cells; above -2)", 1, -2)
    report(3, "of equal sums of bits the even one is best (points, even cell minus uneven ones)", 1, 0)
    report(5, "8 bits of both cost less than 1 percent", 1, -1)
    report(4, "a cliff at 4-bit weights (points, loss from 5 to 4 beyond that from 8 to 5)", 0, 0)
}
