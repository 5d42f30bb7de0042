/** The texts that tasks add to. */
#include "base/bytes.h"
#include "base/number.h"
#include "base/shown.h"
#include "base/words.h"
#include "task/task.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void qat_text_add(qat_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qat_write_vtext(text, format, args);
    va_end(args);
}

void qat_text_add_figure(qat_text *text, const qat_accuracy *accuracy, int figure)
{
    double const value = qat_figure_of(accuracy, figure);
    bool const percent = !accuracy->task || accuracy->task->figures[figure].kind != QAT_FIGURE_REAL;
    if (isnan(value))
        qat_text_add(text, "not known");
    else
        qat_text_add(text, percent ? "%.2f %%" : "%.6g", value);
}

void qat_text_add_count(qat_text *text, const qat_accuracy *accuracy, const char *sample)
{
    qat_text_add(text, "  (%lld %s%s)", (long long)accuracy->n, sample, qat_plural(accuracy->n));
}

void qat_text_add_shown(qat_text *text, const char *of)
{
    size_t const max = strlen(of) * QAT_SHOWN_PER_BYTE + 1;
    char *shown = malloc(max);
    text->failed |= !shown;
    if (shown) {
        qat_shown(shown, max, of, false);
        qat_write_bytes(text, shown, strlen(shown));
    }
    free(shown);
}

void qat_text_add_json(qat_text *text, const char *of)
{
    qat_write_json(text, of);
}

void qat_text_add_label(qat_text *text, const qi_model *model, int class_, bool json)
{
    const char *label = class_ < (int)qi_label_count(model) ? qi_label_at(model, class_) : "";
    (json ? qat_text_add_json : qat_text_add_shown)(text, label);
}
