/**
 * The certificate from start to end: open the file as a device does, analyse the float graph,
 * compare.
 */
#include "certify/certify.h"
#include "base/checksums/sha256.h"

#include <string.h>

/** At most so many tensors are brought into other classes. */
static size_t count_members(const cert *c)
{
    size_t n = 1;
    for (int i = 0; i < c->count; i++)
        n += (size_t)qat_graph_node(c->graph, i)->n_data;
    return n;
}

static qat_status take_arrays(cert *c)
{
    size_t const n = (size_t)c->count + 1, tensors = (size_t)qi_tensor_count(c->model) + 1;
    c->class_first = qat_arena_array(&c->arena, 2 * n, sizeof *c->class_first);
    c->members = qat_arena_array(&c->arena, count_members(c), sizeof *c->members);
    c->writer = qat_arena_array(&c->arena, tensors, sizeof *c->writer);
    c->seen = qat_arena_array(&c->arena, (size_t)qi_node_count(c->model) + 1, sizeof *c->seen);
    if (!c->class_first || !c->members || !c->writer || !c->seen)
        return qat_out_of_memory(c->err, "certificate");
    return QAT_OK;
}

static void note_writers(cert *c)
{
    memset(c->class_first, -1, 2 * ((size_t)c->count + 1) * sizeof *c->class_first);
    memset(c->writer, -1, (size_t)qi_tensor_count(c->model) * sizeof *c->writer);
    for (int i = 0; i < qi_node_count(c->model); i++)
        for (int k = 0; k < qi_node_at(c->model, i)->n_outputs; k++)
            c->writer[qi_node_at(c->model, i)->outputs[k]] = i;
}

static qat_status compare(cert *c)
{
    qat_status st = take_arrays(c);
    if (st)
        return st;
    note_writers(c);
    st = cert_analyse(c);
    return st ? st : cert_walk(c);
}

/** Say in every message where it comes from. */
static qat_status named(qat_status st, const qat_error *inner, qat_error *err)
{
    return st == QAT_ERR_MISMATCH
               ? qat_fail(err, st, "the model does not hold what the checkpoint says: %s",
                          inner->message)
           : st ? qat_fail(err, st, "%s", inner->message)
                : QAT_OK;
}

qat_status qat_certify(qat_certificate *certificate, const void *qm, size_t qm_bytes,
                       const qi_kernel_list *kernels, const qat_certify_source *source,
                       qat_error *err)
{
    qi_host *host = NULL;
    qi_host_options const options = {
        .struct_size = sizeof options, .custom = kernels, .isa = "scalar", .keep_packed = 1};
    qat_error inner = {0};
    *certificate = (qat_certificate){0};
    qat_sha256(qm, qm_bytes, certificate->sha256);
    qat_status st = qi_host_open_bytes(&host, qm, qm_bytes, "the engine refuses the model: model",
                                       &options, err);
    if (st)
        return st;
    cert c = {.source = source,
              .graph = source->graph,
              .count = qat_graph_nodes(source->graph),
              .model = qi_host_model(host),
              .result = certificate,
              .err = &inner};
    st = compare(&c);
    qat_arena_free(&c.arena);
    qi_host_close(host);
    return named(st, &inner, err);
}
