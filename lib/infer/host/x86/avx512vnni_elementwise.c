/** Runs of codes with AVX-512. */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide512.h"

#include "infer/host/x86/lookup_shuffle.h"

#include "infer/host/x86/elementwise_wide.h"

const qi_elementwise QI_VARIANT(qi_elementwise_avx512vnni) = {
    .name = "avx512vnni", ELEMENTWISE_WIDE, .lookup_channels = lookup_channels};
