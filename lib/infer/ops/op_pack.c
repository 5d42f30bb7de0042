/** pack, unpack: infer/kernels/pack.h. Between two ops, a tensor of few bits then takes less RAM.
 */
#include "infer/kernels/pack.h"
#include "infer/model/code.h"
#include "infer/model/op.h"

/** codes: the tensor of few bits; packed: the bytes that hold it. */
static void rule_packed(qi_checker *c, const qi_tensor *codes, const qi_tensor *packed)
{
    int32_t const n = qi_codes_of_byte(codes->bits), last = codes->rank - 1;
    qi_rule_range(c, "bits of codes that share bytes", codes->bits, 1, QI_SHARED_BITS);
    qi_rule(c, packed->type == QI_U8, QI_ERR_SHAPE, "type of shared bytes", packed->type, QI_U8);
    qi_rule(c, packed->bits == 8, QI_ERR_SHAPE, "bits of shared bytes", packed->bits, 8);
    qi_rule(c, packed->zero_point == 0, QI_ERR_PARAM, "zero_point of shared bytes",
            packed->zero_point, 0);
    qi_rule(c, packed->rank == codes->rank, QI_ERR_SHAPE, "rank of shared bytes", packed->rank,
            codes->rank);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int32_t const want = d == last ? (codes->dims[d] + n - 1) / n : codes->dims[d];
        qi_rule(c, packed->dims[d] == want, QI_ERR_SHAPE, "dimension of shared bytes",
                packed->dims[d], want);
    }
}

static int begins_well(qi_checker *c)
{
    return qi_rule_counts(c, 1, 1, 0, QI_ROUND_NONE) && qi_rule_codes(c, 0, 0);
}

static qi_status check_pack(const qi_model *model, const qi_node *node, int32_t index,
                            qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (begins_well(&c))
        rule_packed(&c, qi_input(model, node, 0), qi_output(model, node));
    return c.status;
}

static qi_status check_unpack(const qi_model *model, const qi_node *node, int32_t index,
                              qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (begins_well(&c))
        rule_packed(&c, qi_output(model, node), qi_input(model, node, 0));
    return c.status;
}

/** Rows without a partial byte are one long row. */
static qk_pack layer_of(const qi_tensor *codes)
{
    int32_t const n = qi_codes_of_byte(codes->bits), count = (int32_t)qi_count(codes);
    int32_t const row = codes->dims[codes->rank - 1], whole = row % n ? row : count;
    return (qk_pack){.rows = count / whole,
                     .codes = whole,
                     .per_byte = (uint8_t)n,
                     .lowest = (uint8_t)qi_code_lo(codes),
                     .mask = (uint8_t)((1 << codes->bits) - 1)};
}

static void fill_pack(const qi_call *call, void *params)
{
    *(qk_pack *)params = layer_of(qi_input(call->model, call->node, 0));
}

static void fill_unpack(const qi_call *call, void *params)
{
    *(qk_pack *)params = layer_of(qi_output(call->model, call->node));
}

static void run_pack(const qi_call *call)
{
    qk_pack p;
    fill_pack(call, &p);
    qk_pack_run(&p, call->in[0], call->out[0]);
}

static void run_unpack(const qi_call *call)
{
    qk_pack p;
    fill_unpack(call, &p);
    qk_unpack_run(&p, call->in[0], call->out[0]);
}

static const char *unpack_function(const qi_call *call)
{
    (void)call;
    return "qk_unpack_run";
}

const qi_kernel qi_kernel_pack = {.name = "pack", .check = check_pack, .run = run_pack};
const qi_kernel qi_kernel_unpack = {.name = "unpack", .check = check_unpack, .run = run_unpack};

const qi_code qi_code_pack = {"qk_pack", sizeof(qk_pack), fill_pack, NULL, 0, 0};
const qi_code qi_code_unpack = {"qk_pack", sizeof(qk_pack), fill_unpack, unpack_function, 0, 0};
