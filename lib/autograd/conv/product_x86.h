/** The product with fused multiply-add of x86. In double precision only the portable one exists. */
#ifndef QAT_AUTOGRAD_PRODUCT_X86_H
#define QAT_AUTOGRAD_PRODUCT_X86_H

#include "autograd/conv/product.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(QAT_REAL_DOUBLE)
#define QAT_PRODUCT_X86

bool qat_product_has_avx512f(void);
bool qat_product_has_avx2(void);
qat_product_fn qat_product_avx512f, qat_product_avx2;

#endif
#endif
