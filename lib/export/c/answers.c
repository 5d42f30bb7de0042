/**
 * The known answer, layer by layer. The engine runs the model's known inputs. The digest of a layer
 * covers its constants, its multipliers, and then the bytes of its outputs, so that a changed byte
 * of either gives another digest.
 */
#include "export/c/out.h"

static uint32_t digest(uint32_t d, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    for (size_t i = 0; i < n; i++)
        d = (d ^ from[i]) * CO_DIGEST_PRIME;
    return d;
}

/** One step of the known answer. */
struct step {
    const co *o;
    uint32_t *digests;
    int32_t layer; /* whose outputs come next */
    int32_t left;  /* outputs of this layer that are still to come; 0: it has not begun */
};

static void add_multiplier(void *context, const char *path, const void *value)
{
    uint32_t *d = context;
    (void)path;
    *d = digest(*d, value, sizeof(int32_t));
}

/** Of the constants and multipliers that layers before it do not have. */
static uint32_t constants_digest(const co *o, int32_t layer)
{
    const co_layer *l = &o->layers[layer];
    uint32_t d = CO_DIGEST_START;
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++)
        if (o->constants[i].name[0] && o->constants[i].layer == layer)
            d = digest(d, qi_tensor_at(o->model, i)->data, qi_tensor_at(o->model, i)->bytes);
    for (int32_t i = 0; l->params && l->same == layer && i < co_structs_of(l); i++)
        co_each_multiplier(&o->pieces, l->code->type,
                           (const uint8_t *)l->params + (size_t)i * l->code->bytes, add_multiplier,
                           &d);
    return d;
}

/** The engine shows inputs of the model first, then the outputs of each node in turn. */
static void visit(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct step *s = context;
    if (s->layer < 0) {
        s->layer += 1;
        return;
    }
    if (!s->left) {
        s->left = s->o->layers[s->layer].node->n_outputs;
        s->digests[s->layer] = constants_digest(s->o, s->layer);
    }
    s->digests[s->layer] = digest(s->digests[s->layer], data, qi_tensor_at(model, tensor)->bytes);
    s->left--;
    s->layer += !s->left;
}

/** The inputs of a step, each behind those of the steps before it. */
static void inputs_of(const co *o, int32_t step, const void **in)
{
    for (int32_t i = 0; i < qi_input_count(o->model); i++)
        in[i] = (const uint8_t *)o->answers[i] +
                (size_t)step * qi_tensor_at(o->model, qi_input_at(o->model, i))->bytes;
}

/** Inputs for a model without a known answer: bytes of a fixed sequence. */
static qat_status make_inputs(co *o)
{
    uint32_t state = 1;
    for (int32_t i = 0; i < qi_input_count(o->model); i++) {
        size_t const n = qi_tensor_at(o->model, qi_input_at(o->model, i))->bytes;
        uint8_t *bytes = qat_arena_array(&o->arena, n, 1);
        if (!bytes)
            return qat_out_of_memory(o->err, NULL);
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            bytes[k] = (uint8_t)(state >> 24);
        }
        o->answers[i] = bytes;
    }
    o->steps = 1;
    return QAT_OK;
}

static qat_status find_inputs(co *o)
{
    o->steps = qi_kat_steps(o->model);
    o->answers =
        qat_arena_array(&o->arena, (size_t)qi_input_count(o->model) + 1, sizeof *o->answers);
    if (!o->answers)
        return qat_out_of_memory(o->err, NULL);
    for (int32_t i = 0; i < qi_input_count(o->model) && o->steps; i++)
        o->answers[i] = qi_kat_input(o->model, i);
    return o->steps ? QAT_OK : make_inputs(o);
}

static void run(co *o, uint8_t *arena, const void **in, void **out)
{
    size_t const layers = (size_t)qi_node_count(o->model);
    qi_reset(o->model, arena);
    for (int32_t step = 0; step < o->steps; step++) {
        struct step s = {.o = o,
                         .digests = o->digests + (size_t)step * layers,
                         .layer = -qi_input_count(o->model)};
        inputs_of(o, step, in);
        qi_run_visit(o->model, arena, in, out, visit, &s);
    }
}

qat_status co_compute_digests(co *o)
{
    if (o->options.no_self_test)
        return QAT_OK;
    qat_status const st = find_inputs(o);
    if (st)
        return st;
    size_t const layers = (size_t)qi_node_count(o->model);
    o->digests = qat_arena_array(&o->arena, layers * (size_t)o->steps, sizeof *o->digests);
    const void **in = qat_arena_array(&o->arena, (size_t)qi_input_count(o->model), sizeof *in);
    void **out = qat_arena_array(&o->arena, (size_t)qi_output_count(o->model), sizeof *out);
    uint8_t *arena = qat_aligned_alloc(qi_arena_bytes(o->model));
    if (o->digests && in && out && arena && !o->only_sizes)
        run(o, arena, in, out);
    qat_aligned_free(arena);
    return o->digests && in && out && arena ? QAT_OK : qat_out_of_memory(o->err, NULL);
}
