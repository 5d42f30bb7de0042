/** The instruction sets of this build, and which of them this processor runs. */
#include "infer/host/loops/fast.h"

#include <string.h>

#ifdef QI_X86
#include "infer/host/x86/x86.h"

#include <cpuid.h>
#endif

#ifdef QI_ARM
#include "infer/host/arm/arm.h"

#include <sys/auxv.h>
#endif

static int always(void)
{
    return 1;
}

#ifdef QI_X86
/* __builtin_cpu_supports asks CPUID, and asks XGETBV whether the system saves the registers. */
static int has_avx512vnni(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}

static int has_avx512vbmi(void)
{
    return has_avx512vnni() && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vpopcntdq");
}

/** The differences to avx512vnni: tables in registers, population counts. */
static const qi_isa qi_isa_avx512vbmi = {.name = "avx512vbmi",
                                         .runs_here = has_avx512vbmi,
                                         .gemm = &qi_gemm_avx512vbmi,
                                         .depthwise = &qi_depthwise_avx512vnni,
                                         .elementwise = &qi_elementwise_avx512vbmi};
static const qi_isa qi_isa_avx512vnni = {.name = "avx512vnni",
                                         .runs_here = has_avx512vnni,
                                         .gemm = &qi_gemm_avx512vnni,
                                         .depthwise = &qi_depthwise_avx512vnni,
                                         .elementwise = &qi_elementwise_avx512vnni};

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

/** CPUID leaf 7, subleaf 1: bit 4 of EAX. Its registers are those of AVX2. */
static int has_avxvnni(void)
{
    unsigned eax, ebx, ecx, edx;
    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax >> 4 & 1);
}

static const qi_isa qi_isa_avxvnni = {.name = "avxvnni",
                                      .runs_here = has_avxvnni,
                                      .gemm = &qi_gemm_avxvnni,
                                      .depthwise = &qi_depthwise_avxvnni,
                                      .elementwise = &qi_elementwise_avx2};
static const qi_isa qi_isa_avx2 = {.name = "avx2",
                                   .runs_here = has_avx2,
                                   .gemm = &qi_gemm_avx2,
                                   .depthwise = &qi_depthwise_avx2,
                                   .elementwise = &qi_elementwise_avx2};
#endif

#ifdef QI_ARM
/* The kernel says what the processor has and the system saves. */
#ifdef QI_ARM64
enum { HWCAP_NEON = 1 << 1, HWCAP_DOT = 1 << 20 }; /* ASIMD, ASIMDDP */
#else
enum { HWCAP_NEON = 1 << 12, HWCAP_DOT = 0 };
#endif

static int has_neon(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_NEON) != 0;
}

static const qi_isa qi_isa_neon = {.name = "neon",
                                   .runs_here = has_neon,
                                   .gemm = &qi_gemm_neon,
                                   .depthwise = &qi_depthwise_neon,
                                   .elementwise = &qi_elementwise_neon};

#ifdef QI_ARM64
static int has_neondot(void)
{
    return has_neon() && (getauxval(AT_HWCAP) & HWCAP_DOT) != 0;
}

static const qi_isa qi_isa_neondot = {.name = "neondot",
                                      .runs_here = has_neondot,
                                      .gemm = &qi_gemm_neondot,
                                      .depthwise = &qi_depthwise_neondot,
                                      .elementwise = &qi_elementwise_neon};
#endif
#endif

static const qi_isa qi_isa_scalar = {.name = "scalar", .runs_here = always};

/** The best comes first. */
static const qi_isa *const sets[] = {
#ifdef QI_X86
    &qi_isa_avx512vbmi, &qi_isa_avx512vnni, &qi_isa_avxvnni, &qi_isa_avx2,
#endif
#ifdef QI_ARM
#ifdef QI_ARM64
    &qi_isa_neondot,
#endif
    &qi_isa_neon,
#endif
    &qi_isa_scalar,
};

enum { SETS = sizeof sets / sizeof sets[0] };

const qi_isa *qi_isa_entry(int i)
{
    return i >= 0 && i < SETS ? sets[i] : NULL;
}

const qi_isa *qi_isa_best(void)
{
    int i = 0;
    while (!sets[i]->runs_here())
        i++; /* scalar is the last and runs anywhere */
    return sets[i];
}

const char *qi_isa_name(int i)
{
    const qi_isa *isa = qi_isa_entry(i);
    return isa ? isa->name : NULL;
}

int qi_isa_runs_here(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i]->name, name) == 0)
            return sets[i]->runs_here();
    return 0;
}
