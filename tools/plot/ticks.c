/** Finds round numbers: 1, 2 and 5 times powers of ten. */
#include "tools/plot/ticks.h"

#include <math.h>
#include <stdlib.h>

static const double round_ones[] = {1, 2, 5};

/** Number k of the sequence ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ...; number 0 is 1. */
static double round_number(int k)
{
    int const decade = k >= 0 ? k / 3 : -((2 - k) / 3);
    double const power = pow(10, abs(decade));
    double const ones = round_ones[k - 3 * decade];
    return decade < 0 ? ones / power : ones * power;
}

/** The k of the first round number that is >= x > 0. */
static int round_up(double x)
{
    int k = 3 * (int)floor(log10(x)) - 1;
    while (round_number(k) < x * (1 - 1e-9))
        k++;
    return k;
}

qat_ticks qat_ticks_linear(double least, double largest)
{
    double const a = fmin(least, largest), b = fmax(least, largest);
    double const magnitude = fmax(fabs(a), fabs(b));
    double const span = b - a > 1e-9 * magnitude ? b - a : magnitude > 0 ? 0.1 * magnitude : 1;
    int const k = round_up(span / 6);
    double const step = round_number(k);
    double const first = floor(a / step + 1e-9), last = fmax(ceil(b / step - 1e-9), first + 1);
    qat_ticks t = {.low = first * step, .high = last * step};
    for (double i = first; i <= last && t.n < QAT_TICKS_MAX; i++)
        t.at[t.n++] = i * step;
    t.digits = k >= 0 ? 0 : (2 - k) / 3;
    return t;
}

/** Ticks within about a decade: 1, 2, 3, ... 9, 10 times a power of ten. */
static qat_ticks ticks_of_a_decade(double a, double b)
{
    int const decade = (int)floor(log10(a) + 1e-9);
    double const unit = round_number(3 * decade);
    int const first = (int)floor(a / unit + 1e-9);
    qat_ticks t = {.logarithmic = true};
    for (int i = first; t.n < 2 || t.at[t.n - 1] < b * (1 - 1e-9); i++)
        t.at[t.n++] = i < 10 ? i * unit : (i - 9) * round_number(3 * decade + 3);
    t.low = t.at[0];
    t.high = t.at[t.n - 1];
    return t;
}

static qat_ticks ticks_of_decades(double a, double b)
{
    bool const tens = log10(b / a) > 4;
    int const each = tens ? 3 : 1; /* every third round number is a power of ten */
    int first = round_up(a), last = round_up(b);
    if (round_number(first) > a * (1 + 1e-9))
        first--;
    while (tens && first % 3)
        first--;
    while (tens && last % 3)
        last++;
    qat_ticks t = {.low = round_number(first), .high = round_number(last), .logarithmic = true};
    for (int k = first; k <= last && t.n < QAT_TICKS_MAX; k += each)
        t.at[t.n++] = round_number(k);
    return t;
}

qat_ticks qat_ticks_logarithmic(double least, double largest)
{
    double const a = fmin(least, largest), b = fmax(least, largest);
    return log10(b / a) < 0.8 ? ticks_of_a_decade(a, b) : ticks_of_decades(a, b);
}

double qat_ticks_position(const qat_ticks *t, double x)
{
    if (t->logarithmic)
        return log(x / t->low) / log(t->high / t->low);
    return (x - t->low) / (t->high - t->low);
}
