/** Opens one model with every instruction set, to compare them. */
#include "convert/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

struct qat_other_hosts {
    qi_host *hosts[MOST];
    int count;
};

static qat_status open_one(qat_other_hosts *h, const void *qm, size_t bytes,
                           const qi_host_options *options, qat_error *err)
{
    char name[96];
    snprintf(name, sizeof name, "the engine (%s, threads %d) refuses the model: model",
             options->isa, options->threads);
    qat_status const st = qi_host_open_bytes(&h->hosts[h->count], qm, bytes, name, options, err);
    h->count += !st;
    return st;
}

static qat_status open_all(qat_other_hosts *h, const void *qm, size_t bytes,
                           const qi_kernel_list *kernels, qat_error *err)
{
    qat_status st = QAT_OK;
    int threads = 2; /* threads for the first instruction set, which is the best */
    for (int i = 0; !st && qi_isa_name(i) && h->count < MOST; i++) {
        if (!qi_isa_runs_here(qi_isa_name(i)))
            continue;
        const char *isa = qi_isa_name(i);
        qi_host_options const options = {.struct_size = sizeof options,
                                         .custom = kernels,
                                         .isa = isa,
                                         .threads = threads,
                                         .limits = QI_NO_LIMITS,
                                         .keep_packed = strcmp(isa, "scalar") == 0};
        st = open_one(h, qm, bytes, &options, err);
        threads = 1;
    }
    return st;
}

qat_status qat_other_hosts_open(qat_other_hosts **hosts, const void *qm, size_t count,
                                const qi_kernel_list *kernels, qat_error *err)
{
    *hosts = NULL;
    qat_other_hosts *h = calloc(1, sizeof *h);
    if (!h)
        return qat_out_of_memory(err, "verify");
    qat_status const st = open_all(h, qm, count, kernels, err);
    if (st)
        qat_other_hosts_close(h);
    else
        *hosts = h;
    return st;
}

void qat_other_hosts_close(qat_other_hosts *hosts)
{
    for (int i = 0; hosts && i < hosts->count; i++)
        qi_host_close(hosts->hosts[i]);
    free(hosts);
}

const qi_host *qat_other_host(const qat_other_hosts *hosts, int i)
{
    return i < hosts->count ? hosts->hosts[i] : NULL;
}
