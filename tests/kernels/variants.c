#include "kernels/variants.h"

#include "qat/infer.h"

#if defined(QI_X86) || defined(QI_TEST_SIMDE)
#include "infer/host/x86/x86.h"
#endif

#if defined(QI_ARM) || defined(QI_TEST_SIMDE)
#include "infer/host/arm/arm.h"
#endif

#ifdef QI_TEST_SIMDE
static int always(void)
{
    return 1;
}
#endif

#ifdef QI_X86
static int has_avx512vbmi(void)
{
    return qi_isa_runs_here("avx512vbmi");
}

static int has_avx512vnni(void)
{
    return qi_isa_runs_here("avx512vnni");
}

static int has_avxvnni(void)
{
    return qi_isa_runs_here("avxvnni");
}

static int has_avx2(void)
{
    return qi_isa_runs_here("avx2");
}
#endif

#ifdef QI_ARM
static int has_neon(void)
{
    return qi_isa_runs_here("neon");
}
#endif

#ifdef QI_ARM64
static int has_neondot(void)
{
    return qi_isa_runs_here("neondot");
}
#endif

const variant variants[] = {
#ifdef QI_X86
    {"avx512vbmi", has_avx512vbmi, &qi_depthwise_avx512vnni, &qi_elementwise_avx512vbmi},
    {"avx512vnni", has_avx512vnni, &qi_depthwise_avx512vnni, &qi_elementwise_avx512vnni},
    {"avxvnni", has_avxvnni, &qi_depthwise_avxvnni, &qi_elementwise_avx2},
    {"avx2", has_avx2, &qi_depthwise_avx2, &qi_elementwise_avx2},
#endif
#ifdef QI_ARM64
    {"neondot", has_neondot, &qi_depthwise_neondot, &qi_elementwise_neon},
#endif
#ifdef QI_ARM
    {"neon", has_neon, &qi_depthwise_neon, &qi_elementwise_neon},
#endif
#ifdef QI_TEST_SIMDE
    {"avx512vbmi through SIMDe", always, &qi_depthwise_avx512vnni_simde,
     &qi_elementwise_avx512vbmi_simde},
    {"avx512vnni through SIMDe", always, &qi_depthwise_avx512vnni_simde,
     &qi_elementwise_avx512vnni_simde},
    {"avxvnni through SIMDe", always, &qi_depthwise_avxvnni_simde, &qi_elementwise_avx2_simde},
    {"avx2 through SIMDe", always, &qi_depthwise_avx2_simde, &qi_elementwise_avx2_simde},
    {"neondot through SIMDe", always, &qi_depthwise_neondot_simde, &qi_elementwise_neon_simde},
    {"neon through SIMDe", always, &qi_depthwise_neon_simde, &qi_elementwise_neon_simde},
#endif
    {NULL, NULL, NULL, NULL},
};

const gemm_entry gemm_variant[] = {
#ifdef QI_X86
    {"avx512vbmi", has_avx512vbmi, &qi_gemm_avx512vbmi},
    {"avx512vnni", has_avx512vnni, &qi_gemm_avx512vnni},
    {"avxvnni", has_avxvnni, &qi_gemm_avxvnni},
    {"avx2", has_avx2, &qi_gemm_avx2},
#endif
#ifdef QI_ARM64
    {"neondot", has_neondot, &qi_gemm_neondot},
#endif
#ifdef QI_ARM
    {"neon", has_neon, &qi_gemm_neon},
#endif
#ifdef QI_TEST_SIMDE
    {"avx512vbmi through SIMDe", always, &qi_gemm_avx512vbmi_simde},
    {"avx512vnni through SIMDe", always, &qi_gemm_avx512vnni_simde},
    {"avxvnni through SIMDe", always, &qi_gemm_avxvnni_simde},
    {"avx2 through SIMDe", always, &qi_gemm_avx2_simde},
    {"neondot through SIMDe", always, &qi_gemm_neondot_simde},
    {"neon through SIMDe", always, &qi_gemm_neon_simde},
#endif
    {NULL, NULL, NULL},
};
