#include "kernels/variants.h"

#include "qat/infer.h"

#if defined(QI_X86) || defined(QI_TEST_SIMDE)
#include "infer/host/x86/x86.h"
#endif

#ifdef QI_TEST_SIMDE
static int always(void)
{
    return 1;
}
#endif

#ifdef QI_X86
static int has_avx512vnni(void)
{
    return qi_isa_runs_here("avx512vnni");
}
#endif

const variant variants[] = {
#ifdef QI_X86
    {"avx512vnni", has_avx512vnni, &qi_depthwise_avx512vnni, &qi_elementwise_avx512vnni},
#endif
#ifdef QI_TEST_SIMDE
    {"avx512vnni through SIMDe", always, &qi_depthwise_avx512vnni_simde,
     &qi_elementwise_avx512vnni_simde},
#endif
    {NULL, NULL, NULL, NULL},
};

const gemm_entry gemm_variant[] = {
#ifdef QI_X86
    {"avx512vnni", has_avx512vnni, &qi_gemm_avx512vnni},
#endif
#ifdef QI_TEST_SIMDE
    {"avx512vnni through SIMDe", always, &qi_gemm_avx512vnni_simde},
#endif
    {NULL, NULL, NULL},
};
