#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

qat_c_locale qat_c_locale_enter(void)
{
    /* The C library has this locale ready: no memory is needed, and it is quick. */
    qat_c_locale of = {.mine = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (of.mine)
        of.before = uselocale(of.mine);
    return of;
}

void qat_c_locale_leave(qat_c_locale of)
{
    if (!of.mine)
        return;
    (void)uselocale(of.before);
    freelocale(of.mine);
}

int qat_vformat(char *text, size_t max, const char *format, va_list args)
{
    qat_c_locale const locale = qat_c_locale_enter();
    int const length = vsnprintf(text, max, format, args);
    qat_c_locale_leave(locale);
    return length;
}

int qat_format(char *text, size_t max, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int const length = qat_vformat(text, max, format, args);
    va_end(args);
    return length;
}

double qat_number_of(const char *text, char **end)
{
    qat_c_locale const locale = qat_c_locale_enter();
    double const value = strtod(text, end);
    qat_c_locale_leave(locale);
    return value;
}

float qat_number_of_f32(const char *text, char **end)
{
    qat_c_locale const locale = qat_c_locale_enter();
    float const value = strtof(text, end);
    qat_c_locale_leave(locale);
    return value;
}
