/** Runs of codes with AVX2. */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide256.h"

#include "infer/host/x86/lookup_shuffle.h"

#include "infer/host/x86/elementwise_wide.h"

const qi_elementwise QI_VARIANT(qi_elementwise_avx2) = {
    .name = "avx2", ELEMENTWISE_WIDE, .lookup_channels = lookup_channels};
