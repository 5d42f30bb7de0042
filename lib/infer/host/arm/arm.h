/** The ARM tables of inner loops, and their builds through SIMDe, which only tests use. */
#ifndef QI_HOST_ARM_H
#define QI_HOST_ARM_H

#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/gemm.h"

extern const qi_gemm qi_gemm_neon, qi_gemm_neon_simde, qi_gemm_neondot, qi_gemm_neondot_simde;
extern const qi_depthwise qi_depthwise_neon, qi_depthwise_neon_simde, qi_depthwise_neondot,
    qi_depthwise_neondot_simde;
extern const struct qi_elementwise qi_elementwise_neon, qi_elementwise_neon_simde;

#endif
