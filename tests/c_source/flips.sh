#!/usr/bin/env bash
# A flipped bit in a network that is C source: NAME_self_test must return the number of the layer whose weights, bias,
# multiplier or table it is.
#
#     flips.sh ANSWERS TESTS      as c_source.sh
set -u
tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
random=6
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"

cat >flip.h <<'END'
/* Flips single bits, at random, and asks the self-test. net.c is compiled without const, so that it can be changed. */
#include "net.c"
#include <stdio.h>

static unsigned long flips, wrong;

static uint32_t next(void)
{
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void flip(const char *name, void *bytes, uint32_t n, int layer)
{
    uint8_t *at = (uint8_t *)bytes;
    for (int i = 0; i < 8; i++) {
        uint32_t const bit = next() % (8 * n);
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int const got = net_self_test();
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        flips++;
        if (got != layer && wrong++ < 3)
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
    fprintf(stderr, "%lu\n", flips);
    return 0;
}
END
try() { # try <model>: prints what is wrong; adds the number of flips to count.txt
    "$tools/qat-export" "$1" net.c >/dev/null || echo "not written"
    {
        echo '#include "flip.h"'
        echo 'static void flips_of(void)'
        echo '{'
        # arrays of constants end in the number of their layer; what a known answer is, is no layer's
        sed -n 's/^static const [a-z0-9_]*_t \([a-z_]*\)_\([0-9]*\)\[.*\] NET_SECTION.*/\1 \2/p' net.c | grep -v '^known ' |
            sed 's/\(.*\) \(.*\)/    flip("\1_\2", \1_\2, sizeof \1_\2, \2);/'
        # multipliers among the parameters: those of which the self-test speaks, in the order of the layers
        awk '/^static uint32_t digest_of_layer/ { on = 1 } /case [0-9]+:|default: \/\*/ { gsub(/[^0-9]/, ""); layer = $0 }
            on && /&layer_.*, 4\);/ { sub(/.*&/, ""); sub(/,.*/, ""); print "    flip(\"" $0 "\", &" $0 ", 4, " layer ");" }' net.c
        # and they are all that there are (a depthwise layer's `multiplier` is a number of channels)
        lacks=$(grep -E '^    -?[0-9]+, /\* (mult|shift)[a-z_]* \*/$' net.c | grep -vc '/\* multiplier \*/')
        has=$(grep -cE 'digest_of\(d, &layer_[0-9]+(\[[0-9]+\])?\.(mult|shift)[a-z_]*, 4\);' net.c)
        [ "$lacks" = "$has" ] || echo "#error of $lacks multipliers, $has are in digests"
        echo '}'
    } >flips.c
    gcc -Dconst= -w -O1 flips.c -o flips && timeout 300 ./flips 2>>count.txt || echo "it is not compiled, or does not end well in 300 s"
}
: >count.txt
wrong=$(awk 'NR % 6 == 1 || /models\/2/' chosen.txt | while read -r model; do
    said=$(try "$model" 2>&1)
    [ -z "$said" ] || echo "$model: $said"
done)
flips=$(awk '{ f += $1 } END { print f + 0 }' count.txt)
if [ -z "$wrong" ] && [ "$flips" -ge 1000 ]; then ok "$flips flipped bits: each is reported with its layer"; else
    not_ok "$flips flipped bits: $(head -n 20 <<<"$wrong")"
fi
exit $failed
