/** Atoms: what a foreign transpose or reshape does to a value (build.h). */
#include "foreign/build.h"

#include <stdio.h>
#include <string.h>

int64_t fv_count(const fv *v)
{
    int64_t n = 1;
    for (int i = 1; i < v->n_atoms; i++)
        n *= v->size[i];
    return n;
}

static void add_atom(fv *v, int64_t size, int axis)
{
    v->size[v->n_atoms] = size;
    v->axis[v->n_atoms++] = axis;
}

fv fv_laid_out(const builder *b, qat_node *node, int rank, const int64_t *dims, const int *axes)
{
    fv v = {.node = node, .rank = rank};
    int at[QAT_FOREIGN_RANK], n = 1;
    add_atom(&v, b->batch, b->batch > 1 ? 0 : -1);
    for (int i = 0; i < rank; i++) {
        v.dims[i] = dims[i];
        at[i] = i >= fv_first(&v) && dims[i] > 1 ? v.n_atoms : -1;
        if (at[i] >= 0)
            add_atom(&v, dims[i], i);
    }
    for (int i = 0; i < rank; i++)
        if (at[axes[i]] >= 0)
            v.memory[n++] = at[axes[i]];
    return v;
}

/** Dimensions 2 and up, 0, 1. */
static void channels_last(int rank, int axes[QAT_FOREIGN_RANK])
{
    int n = 0;
    for (int i = 2; i < rank; i++)
        axes[n++] = i;
    for (int i = 0; i < 2 && i < rank; i++)
        axes[n++] = i;
}

fv fv_channels_last(const builder *b, qat_node *node, int rank, const int64_t *dims)
{
    int axes[QAT_FOREIGN_RANK];
    channels_last(rank, axes);
    return fv_laid_out(b, node, rank, dims, axes);
}

fv fv_in_order(const builder *b, qat_node *node, int rank, const int64_t *dims)
{
    int axes[QAT_FOREIGN_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return fv_laid_out(b, node, rank, dims, axes);
}

int fv_first(const fv *v)
{
    return v->size[0] > 1;
}

bool fv_is_stack(const fv *v)
{
    return fv_first(v) == 0 && v->rank > 0 && v->dims[0] > 1;
}

fv fv_like(const fv *value, qat_node *node)
{
    fv v = *value;
    v.node = node;
    return v;
}

/* ------------------------------------------------------------------ lists of atoms */

static void remove_from_memory(fv *v, int at)
{
    for (int i = at; i + 1 < v->n_atoms; i++)
        v->memory[i] = v->memory[i + 1];
}

/** Join atom a + 1 to atom a, beside which it lies in memory. place: of a in memory. */
static void join(fv *v, int a, int place)
{
    v->size[a] *= v->size[a + 1];
    remove_from_memory(v, place + 1);
    for (int i = a + 1; i + 1 < v->n_atoms; i++) {
        v->size[i] = v->size[i + 1];
        v->axis[i] = v->axis[i + 1];
    }
    v->n_atoms--;
    for (int i = 0; i < v->n_atoms; i++)
        v->memory[i] -= v->memory[i] > a;
}

/** Join neighbours; those of different dimensions too, if across. */
static void simplify(fv *v, bool across)
{
    for (int i = 1; i + 1 < v->n_atoms;) {
        int const a = v->memory[i];
        if (v->memory[i + 1] == a + 1 && (across || v->axis[a] == v->axis[a + 1]))
            join(v, a, i);
        else
            i++;
    }
}

/** Split atom a into `outer` pieces. */
static bool split(fv *v, int a, int64_t outer)
{
    if (v->n_atoms == FV_ATOMS)
        return false;
    for (int i = v->n_atoms; i > a + 1; i--) {
        v->size[i] = v->size[i - 1];
        v->axis[i] = v->axis[i - 1];
    }
    v->size[a + 1] = v->size[a] / outer;
    v->axis[a + 1] = v->axis[a];
    v->size[a] = outer;
    int place = 0;
    for (int i = 0; i < v->n_atoms; i++) {
        v->memory[i] += v->memory[i] > a;
        place = v->memory[i] == a ? i : place;
    }
    for (int i = v->n_atoms; i > place + 1; i--)
        v->memory[i] = v->memory[i - 1];
    v->memory[place + 1] = a + 1;
    v->n_atoms++;
    return true;
}

/* ------------------------------------------------------------------ moving values */

qat_node *fv_shaped(builder *b, const fv *value, qat_shape shape)
{
    shape.dims[0] = value->node ? value->node->shape.dims[0] : 1;
    if (!value->node || qat_shape_equal(&shape, &value->node->shape))
        return value->node;
    int d[3] = {0};
    for (int i = 1; i < shape.rank; i++)
        d[i - 1] = shape.dims[i];
    if (shape.rank == 2)
        return fv_add(b, "flatten", "flat", value->node, " ");
    return fv_add(b, "reshape", "shape", value->node, "d1=%d d2=%d d3=%d", d[0], d[1], d[2]);
}

/** The values of [N, d1, d2, d3] with its dimensions in another order. */
static qat_status transpose(builder *b, fv *v, const int shape[3], const int perm[3])
{
    qat_node *x = fv_shaped(b, v, QAT_SHAPE(1, shape[0], shape[1], shape[2]));
    v->node = fv_add(b, "transpose", "order", x, "d1=%d d2=%d d3=%d", perm[0], perm[1], perm[2]);
    return v->node ? QAT_OK : fv_graph_error(b);
}

/**
 * Blocks of atoms that lie together before and after a move. Returns their number; `of` tells for
 * each place in memory the block, from 1.
 */
static int blocks_of(const fv *v, const int *place, int *of, int size[FV_ATOMS])
{
    int blocks = 0;
    for (int i = 1; i < v->n_atoms; i++) {
        bool const follows = i > 1 && place[v->memory[i]] == place[v->memory[i - 1]] + 1;
        blocks += !follows;
        of[i] = blocks;
        size[blocks] = (int)(follows ? size[blocks] : 1) * (int)v->size[v->memory[i]];
    }
    return blocks;
}

/** All in one transposition, of at most three blocks. */
static qat_status move_blocks(builder *b, fv *v, const int *order, int blocks, const int *of,
                              const int size[FV_ATOMS])
{
    int perm[3], shape[3], n = 0;
    for (int i = 1; i < v->n_atoms; i++)
        for (int k = 1; k < v->n_atoms; k++)
            if (v->memory[k] == order[i] && (k == 1 || of[k] != of[k - 1]))
                perm[n++] = of[k];
    for (int i = 0; i < 3; i++)
        shape[i] = i < blocks ? size[i + 1] : 1;
    for (; n < 3; n++)
        perm[n] = n + 1;
    qat_status const st = transpose(b, v, shape, perm);
    memcpy(v->memory, order, (size_t)v->n_atoms * sizeof *order);
    return st;
}

/** Move the atoms at places first .. last of the memory behind all others. */
static qat_status move_to_end(builder *b, fv *v, int first, int last)
{
    int shape[3] = {1, 1, 1}, moved[FV_ATOMS], n = 0;
    for (int i = 1; i < v->n_atoms; i++)
        shape[i < first ? 0 : i <= last ? 1 : 2] *= (int)v->size[v->memory[i]];
    if (last + 1 == v->n_atoms)
        return QAT_OK;
    qat_status const st = transpose(b, v, shape, (const int[]){1, 3, 2});
    for (int i = first; i <= last; i++)
        moved[n++] = v->memory[i];
    memmove(v->memory + first, v->memory + last + 1,
            (size_t)(v->n_atoms - last - 1) * sizeof *moved);
    memcpy(v->memory + v->n_atoms - n, moved, (size_t)n * sizeof *moved);
    return st;
}

static int place_in(const fv *v, int atom)
{
    int at = 0;
    while (v->memory[at] != atom)
        at++;
    return at;
}

/** Bring the atoms into this order in memory: in one transposition, or one after the other. */
static qat_status move(builder *b, fv *v, const int *order)
{
    int of[FV_ATOMS], size[FV_ATOMS], place[FV_ATOMS], kept = 1, at = 0;
    qat_status st = QAT_OK;
    for (int i = 0; i < v->n_atoms; i++)
        place[order[i]] = i;
    int const blocks = blocks_of(v, place, of, size);
    if (!memcmp(v->memory, order, (size_t)v->n_atoms * sizeof *order))
        return QAT_OK;
    if (blocks <= 3)
        return move_blocks(b, v, order, blocks, of, size);
    for (; kept < v->n_atoms && place_in(v, order[kept]) > at; kept++)
        at = place_in(v, order[kept]);
    while (kept < v->n_atoms && !st) {
        int const first = place_in(v, order[kept]);
        int last = first;
        for (kept++;
             kept < v->n_atoms && last + 1 < v->n_atoms && v->memory[last + 1] == order[kept];
             kept++)
            last++;
        st = move_to_end(b, v, first, last);
    }
    return st;
}

qat_status fv_order(builder *b, fv *v, const int *axes)
{
    int order[FV_ATOMS] = {0}, n = 1;
    for (int i = 0; i < v->rank; i++)
        for (int a = 1; a < v->n_atoms; a++)
            if (v->axis[a] == axes[i])
                order[n++] = a;
    return move(b, v, order);
}

qat_status fv_to_channels_last(builder *b, fv *v)
{
    int axes[QAT_FOREIGN_RANK];
    channels_last(v->rank, axes);
    return fv_order(b, v, axes);
}

qat_status fv_planes(builder *b, fv *v, qat_node **node)
{
    if (v->rank < 2 || v->rank > 4)
        return fv_refuse(b, "its input has %d dimensions; 2 to 4 are possible", v->rank);
    qat_status const st = fv_to_channels_last(b, v);
    if (st)
        return st;
    int const h = v->rank == 4 ? (int)v->dims[2] : 1,
              w = v->rank > 2 ? (int)v->dims[v->rank - 1] : 1;
    *node = fv_shaped(b, v, QAT_SHAPE(1, h, w, (int)(fv_count(v) / h / w)));
    return *node ? QAT_OK : fv_graph_error(b);
}

qat_status fv_picture(builder *b, fv *v, qat_node **node)
{
    if (fv_is_stack(v))
        return fv_refuse(b,
                         "its input has %lld in the first dimension, which is no batch here: the "
                         "whole input is one sample",
                         (long long)v->dims[0]);
    return fv_planes(b, v, node);
}

qat_status fv_row(builder *b, fv *v, bool in_order, qat_node **node)
{
    int order[FV_ATOMS];
    for (int i = 0; i < v->n_atoms; i++)
        order[i] = i;
    qat_status const st = in_order ? move(b, v, order) : QAT_OK;
    if (st)
        return st;
    *node = fv_shaped(b, v, QAT_SHAPE(1, (int)fv_count(v)));
    return *node ? QAT_OK : fv_graph_error(b);
}

int *fv_positions(builder *b, const fv *v)
{
    int64_t const n = fv_count(v);
    int64_t step[FV_ATOMS], next = 1;
    int *positions = fv_take(b, &b->arena, (size_t)n, sizeof *positions);
    for (int i = v->n_atoms - 1; i > 0; i--) {
        step[i] = next;
        next *= v->size[i];
    }
    for (int64_t i = 0; positions && i < n; i++) {
        int64_t rest = i, at = 0;
        for (int k = v->n_atoms - 1; k > 0; k--) {
            int const a = v->memory[k];
            at += rest % v->size[a] * step[a];
            rest /= v->size[a];
        }
        positions[i] = (int)at;
    }
    return positions;
}

/* ------------------------------------------------------------------ reshape, permute */

/** Give the atoms, in order, to the new dimensions. False: an end of a dimension lies inside an
 *  atom that cannot be split there. */
static bool align(fv *v, int rank, const int64_t *dims)
{
    int a = 1;
    for (int i = fv_first(v); i < rank; i++) {
        int64_t left = dims[i];
        for (; left > 1; a++) {
            if (a >= v->n_atoms)
                return false;
            if (v->size[a] > left && (v->size[a] % left || !split(v, a, left)))
                return false;
            if (left % v->size[a])
                return false;
            left /= v->size[a];
            v->axis[a] = i;
        }
    }
    return a == v->n_atoms;
}

qat_status fv_reshape(builder *b, fv *v, int rank, const int64_t *dims)
{
    int64_t n = 1;
    int const first = fv_first(v);
    if (rank < first || rank > QAT_FOREIGN_RANK)
        return fv_refuse(b, "%d dimensions", rank);
    if (first && dims[0] != v->size[0])
        return fv_refuse(b, "it changes the batch, the first dimension, from %lld to %lld",
                         (long long)v->size[0], (long long)dims[0]);
    for (int i = first; i < rank && n <= INT32_MAX; i++)
        n *= dims[i] > 0 && dims[i] <= INT32_MAX ? dims[i] : INT32_MAX;
    if (n != fv_count(v))
        return fv_refuse(b, "the new shape does not have as many values as the input");
    fv tried = *v;
    if (!align(&tried, rank, dims)) {
        int order[FV_ATOMS];
        for (int i = 0; i < v->n_atoms; i++)
            order[i] = i;
        tried = *v;
        qat_status const st = move(b, &tried, order);
        if (st)
            return st;
        simplify(&tried, true);
        if (!align(&tried, rank, dims))
            return fv_refuse(b, "the new shape has too many dimensions");
    }
    *v = tried;
    v->rank = rank;
    for (int i = 0; i < rank; i++)
        v->dims[i] = dims[i];
    simplify(v, false);
    return QAT_OK;
}

qat_status fv_permute(builder *b, fv *v, const int *perm)
{
    fv p = {.node = v->node, .rank = v->rank};
    int now[FV_ATOMS] = {0};
    if (fv_first(v) && perm[0] != 0)
        return fv_refuse(b, "it moves the batch, the first dimension");
    add_atom(&p, v->size[0], v->axis[0]);
    for (int i = 0; i < v->rank; i++) {
        p.dims[i] = v->dims[perm[i]];
        for (int a = 1; a < v->n_atoms; a++)
            if (v->axis[a] == perm[i]) {
                now[a] = p.n_atoms;
                add_atom(&p, v->size[a], i);
            }
    }
    for (int i = 0; i < v->n_atoms; i++)
        p.memory[i] = now[v->memory[i]];
    *v = p;
    simplify(v, false);
    return QAT_OK;
}
