/** Shared by the files that turn foreign operators into nodes of a graph. */
#ifndef QAT_FOREIGN_BUILD_H
#define QAT_FOREIGN_BUILD_H

#include "foreign/foreign.h"

/**
 * What a foreign value is here: a constant, or a node.
 *
 * The file's dimensions (NCHW) and the order in memory (NHWC) differ. So a value has atoms: pieces
 * of dimensions, in the order of the file's dimensions, each of more than one position. Only the
 * batch, atom 0, is always there. `memory` lists them as they lie in memory. A foreign transpose or
 * reshape then only changes the lists. An op that needs another order moves the values.
 *
 * The batch is dimension 0 of the file, and stays it, where the file's input has several samples.
 * Otherwise the whole input is one sample: atom 0 has size 1 and is a piece of no dimension, and
 * dimension 0 is one like others.
 *
 *     [N, C, H, W] as NHWC                atoms N C H W, memory N H W C
 *     reshaped to [N, 2, C/2, H, W]       atoms N 2 C/2 H W, memory N H W 2 C/2
 *     transposed (0, 2, 1, 3, 4)          atoms N C/2 2 H W, memory N H W 2 C/2
 */
enum { FV_ATOMS = 16 };

typedef struct fv {
    const qat_foreign_tensor *constant; /* or: */
    qat_node *node;
    int rank;
    int64_t dims[QAT_FOREIGN_RANK]; /* as the file has them */
    int n_atoms;
    int64_t size[FV_ATOMS];
    int axis[FV_ATOMS];   /* the dimension that the atom is a piece of; -1: of none */
    int memory[FV_ATOMS]; /* atoms */
} fv;

typedef struct builder {
    const qat_foreign_graph *from;
    const qat_foreign_options *options;
    qat_graph *graph;
    fv *values;
    int64_t batch; /* samples of the file's input; 1: dimension 0 is like others */
    bool is_open;  /* dimension 0 of the input is unknown: a batch of any size */
    bool *needed;  /* by node of the file */
    int head_node; /* the layer that is replaced; -1: none */
    int64_t head_was;
    const qat_foreign_node *node; /* that is being built */
    int number;                   /* its number */
    char name[QAT_NAME_MAX];      /* its name in the graph */
    qat_foreign_params *params;
    qat_arena arena;
    uint64_t room;          /* bytes that constants and parameters may still take */
    bool full;              /* they would have taken more */
    const char *wrong_attr; /* of the current node: an attribute of another kind */
    qat_error *err;
} builder;

typedef qat_status fv_build(builder *b);

/** How an operator is built; its inputs are known. */
typedef struct fv_operator {
    const char *op;
    fv_build *build;
} fv_operator;
extern const fv_operator fv_layer_operators[], fv_product_operators[], fv_pool_operators[],
    fv_elementwise_operators[], fv_binary_operators[], fv_shape_operators[], fv_part_operators[],
    fv_pad_operators[], fv_resize_operators[];

/* ------------------------------------------------------------------ saying no */

/** "net.onnx: node 'conv1' (Conv): ..." */
qat_status fv_refuse(const builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** The first error of the graph or of memory, with the node of the file before it. */
qat_status fv_graph_error(const builder *b);

/* ------------------------------------------------------------------ attributes, inputs */

const qat_foreign_attr *fv_attr(const builder *b, const char *name);
/** `otherwise` without the attribute. One of another kind is refused when the node is built. */
int64_t fv_attr_int(builder *b, const char *name, int64_t otherwise);
double fv_attr_real(builder *b, const char *name, double otherwise);
const char *fv_attr_text(builder *b, const char *name, const char *otherwise);
/** Copies at most `most` integers; returns how many there are, 0 without the attribute. */
int fv_attr_ints(builder *b, const char *name, int64_t *to, int most);

/** Input i; NULL if it is left out. */
fv *fv_input(const builder *b, int i);
/** Input i, which must be computed. */
qat_status fv_data(const builder *b, int i, fv **value);
/** Input i, which must be a constant of floats. *constant NULL: it is left out. */
qat_status fv_floats(const builder *b, int i, const char *what,
                     const qat_foreign_tensor **constant);
/** Integers: of input i, or of the attribute (older versions). Returns their number in *n, -1
 *  without them. */
qat_status fv_ints(builder *b, int i, const char *attribute, int64_t *to, int most, int *n);
/** An axis counted from the end if it is negative. */
qat_status fv_axis(const builder *b, int64_t axis, int rank, int *result);
/** Unsqueeze: dims with a 1 at each of its axes; *rank is that of `from`, then that of dims. */
qat_status fv_unsqueezed(builder *b, const int64_t *from, int *rank, int64_t *dims);
/** Set output i. */
void fv_output(builder *b, int i, const fv *value);
void fv_output_constant(builder *b, int i, const qat_foreign_tensor *constant);

/* ------------------------------------------------------------------ the network's input */

/**
 * What the file's input is here: a batch in its first dimension, or one sample.
 * @param input  [1, H, W, C]
 */
qat_status fv_place_input(builder *b, const qat_foreign_value *given, qat_node *input, fv *x);

/* ------------------------------------------------------------------ values and memory */

/** A value whose dimensions lie in memory in the order of `axes` (behind the batch). */
fv fv_laid_out(const builder *b, qat_node *node, int rank, const int64_t *dims, const int *axes);
/** In the order for ops on pictures: dimensions 2 and up, 0, 1. */
fv fv_channels_last(const builder *b, qat_node *node, int rank, const int64_t *dims);
/** In the file's order. */
fv fv_in_order(const builder *b, qat_node *node, int rank, const int64_t *dims);
/** The first dimension that is no batch: 1, or 0. */
int fv_first(const fv *value);
/** Does a sample consist of several pictures, along dimension 0? */
bool fv_is_stack(const fv *value);
/** The same atoms, computed by another node. */
fv fv_like(const fv *value, qat_node *node);
/** Reshape and permute, without moving values if possible. */
qat_status fv_reshape(builder *b, fv *value, int rank, const int64_t *dims);
qat_status fv_permute(builder *b, fv *value, const int *perm);
/** Move the values so that the dimensions lie in memory in this order. */
qat_status fv_order(builder *b, fv *value, const int *axes);
/** The order for ops on pictures: the batch, dimensions 2 and up, 0, 1. */
qat_status fv_to_channels_last(builder *b, fv *value);
/** The node with another shape of the same memory. */
qat_node *fv_shaped(builder *b, const fv *value, qat_shape shape);
/** [N, H, W, C] of a value of rank 2 to 4 that is no stack. */
qat_status fv_picture(builder *b, fv *value, qat_node **node);
/** The same, of a stack too: its pictures are channels. For ops that treat channels alike. */
qat_status fv_planes(builder *b, fv *value, qat_node **node);
/** [N, n], in the file's order if in_order, else in that of the memory. */
qat_status fv_row(builder *b, fv *value, bool in_order, qat_node **node);
/** By position in memory of one sample: its position in the file's order. NULL: no memory. */
int *fv_positions(builder *b, const fv *value);
int64_t fv_count(const fv *value); /* values of one sample */

/* ------------------------------------------------------------------ parts */

/** Positions begin, begin + step ... of a dimension: `count` of them. */
qat_status fv_part(builder *b, const fv *x, int axis, int64_t begin, int64_t step, int64_t count,
                   fv *part);
/** Positions at[0] .. at[n - 1] of a dimension, in any order, repeated or not. */
qat_status fv_gather(builder *b, const fv *x, int axis, const int64_t *at, int64_t n, fv *y);
/** A part without values, of these dimensions: a constant, known without data. */
qat_status fv_empty(builder *b, int rank, const int64_t *dims, fv *part);
/** Is it one? */
bool fv_is_empty(const fv *x);
/** What Slice takes of n axes, by its inputs or attributes: fv_cut_of gives the positions. */
typedef struct fv_slice {
    int n, axes[QAT_FOREIGN_RANK];
    int64_t begins[QAT_FOREIGN_RANK], ends[QAT_FOREIGN_RANK], steps[QAT_FOREIGN_RANK];
} fv_slice;
qat_status fv_slice_of(builder *b, int rank, fv_slice *slice);
/** What Slice takes of a dimension; its step may be negative. */
typedef struct fv_cut {
    int64_t begin, step, count;
} fv_cut;
qat_status fv_cut_of(const builder *b, int64_t length, int64_t begin, int64_t end, int64_t step,
                     fv_cut *cut);
/** Values one after the other along a dimension. */
qat_status fv_join(builder *b, int n, const fv *values, int axis, fv *y);
/** A value as [N, before, length, after] around a dimension, which is dimension *at of the shape.
 *  Where `after` is 1, or the node has such a shape already, it may be the last or another one. */
qat_status fv_around(builder *b, fv *x, int axis, qat_shape *shape, int *at);
/** The value of fv_around with another length of that dimension. */
fv fv_resized(const fv *x, qat_node *node, int axis, int64_t length);

/**
 * Output 0: rows of a constant table at the positions that data say, as Gather along an axis.
 */
qat_status fv_embedding(builder *b, const qat_foreign_tensor *table, int axis, const fv *positions);

/* ------------------------------------------------------------------ nodes and parameters */

/** Add a bias node behind y, with these values times the factor (or one for all); that of a new
 * last layer starts at 0. */
qat_status fv_bias(builder *b, qat_node **y, const qat_foreign_tensor *values, float factor);

/** Add a node "<name>" or "<name>/<part>", of this op, that reads a. */
qat_node *fv_add(builder *b, const char *op, const char *part, qat_node *a, const char *attrs, ...)
    __attribute__((format(printf, 5, 6)));
qat_node *fv_add2(builder *b, const char *op, const char *part, qat_node *a, qat_node *other,
                  const char *attrs);
qat_node *fv_add_all(builder *b, const char *op, const char *part, int n, qat_node *const *inputs,
                     const char *attrs);
/** Name the current node after its weights, if its own name says nothing: "conv1.weight". */
void fv_name_after(builder *b, int input);
/** Room for the values of parameter i of a node; they are set later. NULL: no memory. */
float *fv_param(builder *b, const qat_node *node, int i);
/** Is the current node the last layer, which gets `options.head` outputs? */
bool fv_is_head(const builder *b);

/* ------------------------------------------------------------------ two values */

/** Give a value at least this rank: dimensions of 1 in front of its own. Not behind a batch. */
qat_status fv_raise_rank(builder *b, fv *x, int rank);
/** Repeat a value where it has 1 in a dimension and the other one, of these dimensions, has more.
 */
qat_status fv_widen(builder *b, fv *x, int rank, const int64_t *dims);
/** c x, or x / c, as a node with this part of a name. */
qat_status fv_scaled(builder *b, const char *part, const fv *x, const qat_foreign_tensor *c,
                     bool divide, fv *out);
/** x + factor c, x + factor y. */
qat_status fv_add_constant(builder *b, fv *x, const qat_foreign_tensor *c, float factor);
qat_status fv_add_scaled(builder *b, fv *x, const fv *y, float factor);

/* ------------------------------------------------------------------ constants */

/** Memory of the arena within the room. NULL: there is not enough; fv_graph_error tells it. */
void *fv_take(builder *b, qat_arena *arena, size_t count, size_t size);

/** Compute the current node, whose inputs are known without data. *done false: it cannot be. */
qat_status fv_fold(builder *b, bool *done);
qat_foreign_tensor *fv_constant(builder *b, qat_foreign_type type, int rank, const int64_t *dims);

#endif
