/** The ARM tables of inner loops, and their builds through SIMDe, which only tests have. */
#ifndef QI_HOST_ARM_H
#define QI_HOST_ARM_H

#include "infer/host/gemm.h"

extern const qi_gemm qi_gemm_neon, qi_gemm_neon_simde, qi_gemm_neondot, qi_gemm_neondot_simde;

#endif
