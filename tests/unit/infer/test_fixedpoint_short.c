/** The same where products have 32 bits, as on a Cortex-M0+. */
#define QI_SHORT_PRODUCTS 1
#include "unit/infer/test_fixedpoint.c"
