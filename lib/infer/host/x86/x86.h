/** The x86 tables of inner loops, and their builds through SIMDe, which only tests use. */
#ifndef QI_HOST_X86_H
#define QI_HOST_X86_H

#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/gemm_pack.h"

extern const qi_gemm qi_gemm_avx512vbmi, qi_gemm_avx512vbmi_simde;
extern const qi_gemm qi_gemm_avx512vnni, qi_gemm_avx512vnni_simde;
extern const qi_gemm qi_gemm_avxvnni, qi_gemm_avxvnni_simde;
extern const qi_gemm qi_gemm_avx2, qi_gemm_avx2_simde;
extern const qi_depthwise qi_depthwise_avx512vnni, qi_depthwise_avx512vnni_simde;
extern const qi_elementwise qi_elementwise_avx512vbmi, qi_elementwise_avx512vbmi_simde;
extern const qi_elementwise qi_elementwise_avx512vnni, qi_elementwise_avx512vnni_simde;
extern const qi_depthwise qi_depthwise_avxvnni, qi_depthwise_avxvnni_simde;
extern const qi_depthwise qi_depthwise_avx2, qi_depthwise_avx2_simde;
extern const qi_elementwise qi_elementwise_avx2,
    qi_elementwise_avx2_simde; /* also used by AVX-VNNI */

#endif
