/**
 * A grid of settings. It has axes with values, and one cell for each choice of a value on every
 * axis.
 *
 *     qat_sweep_grid grid = {0};
 *     qat_sweep_grid_add(&grid, "quant.weight_bits=8,4", &err);
 *     qat_sweep_grid_add(&grid, "model.filters={8,16},{16,32}", &err);
 *     for (int cell = 0; cell < qat_sweep_grid_cells(&grid); cell++)
 *         puts(qat_sweep_grid_value(&grid, cell, 1));        8,16  16,32  8,16  16,32
 *     qat_sweep_grid_free(&grid);
 */
#ifndef QAT_SWEEP_GRID_H
#define QAT_SWEEP_GRID_H

#include "base/arena.h"
#include "qat/status.h"

enum { QAT_SWEEP_MAX_AXES = 64, QAT_SWEEP_MAX_CELLS = 10000, QAT_SWEEP_NAME_MAX = 200 };

typedef struct qat_sweep_grid_axis {
    const char *key;
    int n;
    const char **values;
} qat_sweep_grid_axis;

/** A zeroed grid is empty; it has one cell. Its texts live as long as the grid. */
typedef struct qat_sweep_grid {
    qat_arena arena;
    int n_axes;
    qat_sweep_grid_axis axes[QAT_SWEEP_MAX_AXES];
} qat_sweep_grid;

void qat_sweep_grid_free(qat_sweep_grid *grid);

/**
 * Add an axis "key=v1,v2,...". A value that contains commas needs braces: "key={1,2},{3,4}". These
 * are errors: no '=', no key, an empty value, a value or a key given twice, braces that do not
 * match, more than QAT_SWEEP_MAX_CELLS cells.
 */
qat_status qat_sweep_grid_add(qat_sweep_grid *grid, const char *text, qat_error *err);
/** Add an axis whose values are given separately. */
qat_status qat_sweep_grid_add_values(qat_sweep_grid *grid, const char *key,
                                     const char *const *values, int n, qat_error *err);

int qat_sweep_grid_cells(const qat_sweep_grid *grid);
/** The axis with this key, or -1. */
int qat_sweep_grid_axis_of(const qat_sweep_grid *grid, const char *key);
/** Which value of the axis a cell has. The last axis changes fastest. */
int qat_sweep_grid_index(const qat_sweep_grid *grid, int cell, int axis);
const char *qat_sweep_grid_value(const qat_sweep_grid *grid, int cell, int axis);

/**
 * The name of a cell, usable as a folder name. It is the first axis's value (its file name without
 * ".ini"), then ",key=value" of each other axis that has several values. Characters other than
 * letters, digits and "-+_.,=" become '_'. Fails if the name is too long.
 */
qat_status qat_sweep_grid_name(const qat_sweep_grid *grid, int cell, char name[QAT_SWEEP_NAME_MAX],
                               qat_error *err);
/** Check that no two cells have the same name; the error says which do. */
qat_status qat_sweep_grid_check_names(const qat_sweep_grid *grid, qat_error *err);

/**
 * Find the only cell whose name has all parts of text. Parts are "key=value" or the first axis's
 * name, separated by commas (values with commas: as in the name). It is an error if there is no
 * such cell, or several.
 */
qat_status qat_sweep_grid_find(const qat_sweep_grid *grid, const char *text, int *cell,
                               qat_error *err);

#endif
