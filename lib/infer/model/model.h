/** Private to lib/infer: the struct of a parsed model, and the steps that build it. */
#ifndef QI_MODEL_H
#define QI_MODEL_H

#include "qat/infer.h"

#include "infer/model/qm_layout.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libqatinfer reads .qm files in place: it needs a little-endian processor"
#endif

/**
 * The place of an activation in time (steps) and memory. Step -1 sets the model's inputs, step
 * n_nodes reads its outputs.
 */
typedef struct qi_span {
    int32_t first;  /* step that writes it, or QI_NEVER */
    int32_t last;   /* last step that reads it; for a root, also of tensors that share its memory */
    uint32_t bytes; /* rounded up to QI_ALIGN */
    uint32_t offset; /* of a root in the arena, of others in the memory of their root */
    int32_t root;    /* the tensor in whose memory this one lies, or itself */
    int32_t next;    /* next placed span by offset; -1: the last; or QI_UNPLACED */
} qi_span;

enum { QI_NEVER = -2, QI_UNPLACED = -2 };

/** A model. It lies at the start of the caller's model memory; tensors, nodes and spans follow. */
struct qi_model {
    const uint8_t *qm;
    const int32_t *ints;
    const char *strings;
    const uint8_t *data;
    qi_tensor *tensors;
    qi_node *nodes;
    qi_span *spans; /* one per tensor, then one per node for its scratch */
    const int32_t *inputs, *outputs, *labels;
    const int32_t *kat; /* known answers; NULL: none stored */
    const char *description;
    int32_t n_tensors, n_nodes, n_inputs, n_outputs, n_labels, n_states, kat_steps;
    uint32_t n_ints, n_strings, n_data;
    size_t arena_bytes;
    size_t alignment; /* of tensors and scratch in the arena: QI_ALIGN, or more on a host */
    qi_preprocessing preprocessing;
    qi_epilogue epilogue;
};

/** Read fields of a file at any alignment. */
static inline uint32_t qm_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline int32_t qm_i32(const uint8_t *p)
{
    return (int32_t)qm_u32(p);
}
static inline int64_t qm_i64(const uint8_t *p)
{
    return (int64_t)(qm_u32(p) | (uint64_t)qm_u32(p + 4) << 32);
}

/** A function that equals qm_crc32. A host has a faster one. */
typedef uint32_t qm_crc32_fn(uint32_t crc, const void *bytes, size_t count);

/** The kernels that a model may use, searched in this order; the first one with the op's name is
 *  used. A list may be NULL. */
typedef struct qi_kernel_set {
    const qi_kernel_list *first, *second;
} qi_kernel_set;

/** Check magic, version, length and CRC. Afterwards the file is known to be undamaged. */
qi_status qm_check_file(const void *qm, size_t qm_bytes, qm_crc32_fn *crc32, qi_error *err);
/** Like qi_model_bytes, for a file that qm_check_file has checked. */
qi_status qi_checked_model_bytes(const void *qm, size_t *need, qi_error *err);
/** Like qi_model_init, for such a file and without the last step, qi_plan_arena. */
qi_status qi_checked_model_read(qi_model **model, const void *qm, const qi_kernel_set *kernels,
                                void *memory, size_t memory_bytes, qi_error *err);
/** Read header, sections and tensors into a model whose arrays have their place. */
qi_status qm_read_header(qi_model *model, qi_error *err);
qi_status qm_read_tensors(qi_model *model, qi_error *err);
/** Read the nodes and find their kernels by name. */
qi_status qm_read_nodes(qi_model *model, const qi_kernel_set *kernels, qi_error *err);
/** Read model inputs and outputs, labels, known answers, preprocessing, borders, epilogue. */
qi_status qm_read_metadata(qi_model *model, qi_error *err);
/** Read a string of the file; QI_ERR_FORMAT if it is none. */
qi_status qm_read_string(const qi_model *model, uint32_t offset, const char **text, qi_error *err);

/** Read a range (first, count) at p: it lies in the int section and has least..most members. */
qi_status qm_read_range(const qi_model *model, const uint8_t *p, uint32_t least, uint32_t most,
                        const char *what, int32_t index, const int32_t **ints, int32_t *count,
                        qi_error *err);
/**
 * Check that offset is a multiple of alignment in the data section and that this many bytes follow
 * it.
 */
qi_status qm_check_data(const qi_model *model, uint32_t offset, uint64_t bytes, uint32_t alignment,
                        const char *what, int32_t index, qi_error *err);
/** Check that the tensors exist and, if activations is set, are activations. */
qi_status qm_check_indices(const qi_model *model, const int32_t *tensors, int32_t count,
                           int activations, const char *what, int32_t index, qi_error *err);
/** Check that the tensors which states take their values from exist and fit. */
qi_status qm_check_states(const qi_model *model, qi_error *err);
/** Are these the bits of a finite float32 that is not negative? */
int qm_is_scale(uint32_t bits);

/**
 * Find when each activation is written and last read. Reads before the write, second writes, and
 * states that nothing reads are errors.
 */
qi_status qi_plan_lifetimes(qi_model *model, qi_error *err);
/** Bytes for the pointers of one call, at the start of the arena; see run.c. */
uint32_t qi_pointer_bytes(const qi_model *model);
/**
 * Decide which tensors share memory, after qi_plan_lifetimes. The lifetime of a root becomes that
 * of all tensors in its memory.
 * @param parts  may tensors be parts of others (strided_slice, concat)?
 * @return       1 if any is
 */
int qi_share_memory(qi_model *model, int parts);
/** The tensor whose memory holds this tensor, at byte *at. */
int32_t qi_root_of(const qi_model *model, int32_t tensor, uint32_t *at);
/**
 * Give activations and scratch their offsets in the arena. May be repeated after qi_plan_lifetimes.
 */
qi_status qi_plan_arena(qi_model *model, qi_error *err);

/**
 * The parts of a run, for the host: copy inputs into the arena, run one node by its core kernel,
 * copy outputs out of the arena (NULL pointers are skipped).
 */
void qi_put_inputs(const qi_model *model, void *arena, const void *const *inputs);
void qi_run_node(const qi_model *model, const qi_node *node, void *arena);
void qi_get_outputs(const qi_model *model, void *arena, void *const *outputs);
/** The end of a run: each state takes the values of its next tensor. */
void qi_carry_on(const qi_model *model, void *arena);
/** The bytes of a tensor: of a constant in the file (read only), of an activation in the arena. */
void *qi_tensor_bytes_in(const qi_model *model, void *arena, int32_t tensor);

/** The list of all built-in kernels; each is in the file of its op family. */
extern const qi_kernel_list qi_built_in_kernels;
/** The kernel of this name in a list (which may be NULL), or NULL. */
const qi_kernel *qi_kernel_in(const qi_kernel_list *list, const char *name);
/** Like qi_model_init, with any kernels. */
qi_status qi_model_init_set(qi_model **model, const void *qm, size_t qm_bytes,
                            const qi_kernel_set *kernels, void *memory, size_t memory_bytes,
                            qi_error *err);

#endif
