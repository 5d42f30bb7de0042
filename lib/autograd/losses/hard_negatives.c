#include "autograd/losses/hard_negatives.h"

#include "base/rank.h"

#include <math.h>

/** NaN sorts first, whatever its sign, so that it shows in the loss. */
static int32_t key_of(double loss)
{
    return isnan(loss) ? INT32_MAX : qat_rank_key((float)loss);
}

/** Mark the matches and put the background anchors into order. Returns the number of matches. */
static int split(const qat_mining *m, int *negatives)
{
    int matches = 0;
    *negatives = 0;
    for (int i = 0; i < m->n; i++) {
        m->chosen[i] = !(m->class[i] <= 0); /* also chooses NaN, so that it shows in the loss */
        matches += m->chosen[i];
        m->keys[i] = key_of(m->loss[i]);
        if (m->class[i] == 0)
            m->order[(*negatives)++] = i;
    }
    return matches;
}

int qat_mine_negatives(const qat_mining *m)
{
    int negatives;
    int const matches = split(m, &negatives);
    double const ratio = m->ratio * matches;
    double const wanted = ratio < m->least ? m->least : ratio;
    int const n = wanted < negatives ? (int)wanted : negatives;
    if (n < negatives)
        qat_rank_falling(m->keys, m->order, m->order + m->n, negatives);
    for (int i = 0; i < n; i++)
        m->chosen[m->order[i]] = 1;
    return matches;
}
