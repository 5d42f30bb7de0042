#!/usr/bin/env bash
# A flipped bit in a network that is C source: NAME_self_test must return the number of the layer whose weights, bias,
# multiplier or table it is. Multipliers that stand among a layer's parameters (those of add, for example) are no
# constants of their own: a flip of these that changes no byte of the known answer is counted apart.
#
#     flips.sh ANSWERS TESTS      as c_source.sh
set -u
tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
random=16
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"

cat >flip.h <<'END'
/* Flips single bits, at random, and asks the self-test. net.c is compiled without const, so that it can be changed. */
#include "net.c"
#include <stdio.h>

static unsigned long flips, unseen, wrong;

static uint32_t next(void)
{
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void flip(const char *name, void *bytes, uint32_t n, int layer, int may_be_unseen)
{
    uint8_t *at = (uint8_t *)bytes;
    for (int i = 0; i < 24; i++) {
        uint32_t const bit = next() % (8 * n);
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int const got = net_self_test();
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        flips++;
        if (got == 0 && may_be_unseen)
            unseen++;
        else if (got != layer && wrong++ < 3)
            printf("%s, bit %lu: layer %d, not %d\n", name, (unsigned long)bit, got, layer);
    }
}

static void flips_of(void);

int main(void)
{
    if (net_self_test())
        printf("the self-test fails before\n");
    flips_of();
    if (net_self_test())
        printf("the self-test fails afterwards\n");
    fprintf(stderr, "%lu %lu\n", flips, unseen);
    return 0;
}
END
try() { # try <model>: prints what is wrong; adds "flips unseen" to count.txt
    "$tools/qat-export" "$1" net.c >/dev/null || echo "not written"
    {
        echo '#include "flip.h"'
        echo 'static void flips_of(void)'
        echo '{'
        # arrays of constants end in the number of their layer; what a known answer is, is no layer's
        sed -n 's/^static const [a-z0-9_]*_t \([a-z_]*\)_\([0-9]*\)\[.*\] NET_SECTION.*/\1 \2/p' net.c | grep -v '^known ' |
            sed 's/\(.*\) \(.*\)/    flip("\1_\2", \1_\2, sizeof \1_\2, \2, 0);/'
        # multipliers among the parameters
        sed -n 's/^static const qk_\(pairs\|requantize\|mean\|sigmoid\|batch_matmul\) layer_\([0-9]*\) = .*/\1 \2/p' net.c |
            sed 's/sigmoid \(.*\)/    flip("in.mult", \&layer_\1.in.mult, 4, \1, 1);/
                s/^[a-z_]* \([0-9]*\)$/    flip("mult", \&layer_\1.mult, 4, \1, 1);/'
        echo '}'
    } >flips.c
    gcc -Dconst= -w -O1 flips.c -o flips && timeout 300 ./flips 2>>count.txt
}
: >count.txt
wrong=$(awk 'NR % 3 == 1 || /models\/2/' chosen.txt | while read -r model; do
    said=$(try "$model" 2>&1)
    [ -z "$said" ] || echo "$model: $said"
done)
read -r flips unseen < <(awk '{ f += $1; u += $2 } END { print f + 0, u + 0 }' count.txt)
if [ -z "$wrong" ] && [ "$flips" -ge 1000 ]; then
    ok "$flips flipped bits: each is reported with its layer, but $unseen multipliers among parameters, which change no byte"
else
    not_ok "$flips flipped bits, $unseen unseen: $(head -n 20 <<<"$wrong")"
fi
exit $failed
