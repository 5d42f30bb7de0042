# The time of a training step on R ranks: computing, sums, and what gradients add. Functions only.
#
# A network is described by lines, as bench/scaling/profile.awk writes them:
#     sum BYTES               an exchange for which all wait: batch norm, losses, ranges; BYTES go to each other rank
#     bucket VALUES LEFT      gradients on their way; LEFT: the share of the step's computing that comes after their start
# `exchange` is the time until a few bytes have gone from every rank to every other, `byte` that of one more byte, and
# `add` that of adding two floats: 0 where computing contains it. `overlaps`: a network card moves bytes while the processor
# computes.

function read_profile(file,    line, f) {
    sums = sum_bytes = buckets = 0
    while ((getline line <file) > 0) {
        split(line, f, " ")
        if (f[1] == "sum") { sums++; sum_bytes += f[2] }
        if (f[1] == "bucket") { buckets++; values[buckets] = f[2]; left[buckets] = f[3] }
    }
    close(file)
}

function sums_of(ranks, exchange, byte) {
    return ranks < 2 ? 0 : sums * exchange + sum_bytes * (ranks - 1) * byte
}

# What gradients add to a step: what is not hidden behind the backward pass.
function gradients_of(ranks, exchange, byte, add, computing, overlaps,    i, one, end, start) {
    if (ranks < 2) return 0
    end = -computing
    for (i = 1; i <= buckets; i++) {
        one = 2 * (exchange + 4 * values[i] * (ranks - 1) / ranks * byte) # roots, then whole sums
        one += (2 + (ranks - 1) / ranks) * values[i] * add                # copies, and the own slice of the tree
        start = overlaps ? -left[i] * computing : 0
        end = (end > start ? end : start) + one
    }
    return end > 0 ? end : 0
}

function step_of(ranks, computing, exchange, byte, add, overlaps) {
    return computing + sums_of(ranks, exchange, byte) + gradients_of(ranks, exchange, byte, add, computing, overlaps)
}
