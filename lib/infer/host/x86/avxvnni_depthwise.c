/** Depthwise convolutions with AVX-VNNI. */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide256.h"

#include "infer/host/x86/depthwise_vnni.h"

const qi_depthwise QI_VARIANT(qi_depthwise_avxvnni) = {.name = "avxvnni",
                                                       .group_bytes = group_bytes,
                                                       .pack = pack,
                                                       .interleave = interleave,
                                                       .run = run,
                                                       .run_block = run_block,
                                                       .block_rows = 1};
