/**
 * Numbers as text, with a decimal point in every locale. A program that calls setlocale(LC_ALL, "")
 * may make its printf write 0,05 and its strtod stop at the point of 0.05. Files must not depend on
 * that: whatever the library writes or reads goes through here.
 */
#ifndef QAT_BASE_NUMBER_H
#define QAT_BASE_NUMBER_H

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/** What the calling thread's locale was. The locale "C" is in use between enter and leave. */
typedef struct qat_c_locale {
    locale_t mine, before;
} qat_c_locale;

/** Around calls of other libraries that read or write numbers. Other threads are not concerned. */
qat_c_locale qat_c_locale_enter(void);
void qat_c_locale_leave(qat_c_locale of);

/** snprintf in the locale "C". */
int qat_format(char *text, size_t max, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int qat_vformat(char *text, size_t max, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/** strtod and strtof in the locale "C"; *end (may be NULL) is the first character after it. */
double qat_number_of(const char *text, char **end);
float qat_number_of_f32(const char *text, char **end);

/* Characters, of ASCII only. The functions of ctype.h know the locale's letters as well. */

static inline bool qat_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool qat_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char qat_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool qat_is_letter(char c)
{
    return qat_lower(c) >= 'a' && qat_lower(c) <= 'z';
}

/**
 * A signal's power over that of its noise, in decibels: -999..999; without noise 999. NaN if one of
 * the two is not a finite number.
 */
static inline double qat_decibels(double signal, double noise)
{
    if (!isfinite(signal) || !isfinite(noise))
        return NAN;
    return noise > 0 ? fmax(-999, fmin(10 * log10(signal / noise), 999)) : 999;
}

#endif
