/** Schedules of bits: "8 until 30%, 4 until 60%". */
#include "base/number.h"
#include "recipe/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *after_blanks(const char *p)
{
    while (qat_is_blank(*p))
        p++;
    return p;
}

/** One stage: a digit, "until", a moment. */
static bool parse_stage(const char *item, qat_recipe_stage *stage)
{
    static const char word[] = "until";
    const char *at = after_blanks(item);
    if (*at < '2' || *at > '8' || !qat_is_blank(at[1]))
        return false;
    stage->bits = *at - '0';
    at = after_blanks(at + 1);
    if (strncmp(at, word, sizeof word - 1) != 0 || !qat_is_blank(at[sizeof word - 1]))
        return false;
    return qat_recipe_parse_moment(&stage->until, after_blanks(at + sizeof word - 1));
}

/** Copy the text up to the next comma, without blanks at its end; go on behind the comma. */
static bool next_item(const char **p, char item[64])
{
    size_t const n = strcspn(*p, ",");
    size_t kept = n;
    while (kept > 0 && qat_is_blank((*p)[kept - 1]))
        kept--;
    if (kept >= 64)
        return false;
    memcpy(item, *p, kept);
    item[kept] = 0;
    *p += n + ((*p)[n] == ',');
    return **p || (*p)[-1] != ','; /* a stage follows each comma */
}

static qat_status refuse(const qat_recipe *r, const char *key, const char *text,
                         const char *expected, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(r, "quant", key, where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: quant.%s = %s: expected %s", where, key, text,
                    expected);
}

qat_status qat_recipe_stages(const qat_recipe *recipe, const char *key, const char *text,
                             qat_recipe_stage stages[QAT_BITS_STAGES], int *n, qat_error *err)
{
    char item[64];
    *n = 0;
    for (const char *p = text; *p;) {
        if (*n == QAT_BITS_STAGES)
            return refuse(recipe, key, text, "at most 6 stages", err);
        if (!next_item(&p, item) || !parse_stage(item, &stages[*n]))
            return refuse(
                recipe, key, text,
                "BITS until WHEN, ..., with 2 to 8 bits, for example 8 until 30%, 4 until "
                "60%",
                err);
        if (*n > 0 && stages[*n].bits >= stages[*n - 1].bits)
            return refuse(recipe, key, text, "fewer bits in each stage than in the one before",
                          err);
        ++*n;
    }
    return QAT_OK;
}

qat_status qat_recipe_bits_stages(const qat_recipe *recipe, const char *key, const char *text,
                                  int64_t per_epoch, int64_t total,
                                  qat_bits_stage stages[QAT_BITS_STAGES], int *n, qat_error *err)
{
    qat_recipe_stage parsed[QAT_BITS_STAGES];
    int count;
    int64_t before = 0;
    qat_status const st = qat_recipe_stages(recipe, key, text, parsed, &count, err);
    *n = 0;
    for (int i = 0; !st && per_epoch && i < count; i++) {
        int64_t const until = qat_steps_resolve(&parsed[i].until, per_epoch, total, 0);
        if (until < before)
            return refuse(recipe, key, text, "stages in their order", err);
        if (until > before)
            stages[(*n)++] = (qat_bits_stage){parsed[i].bits, until};
        before = until;
    }
    return st;
}
