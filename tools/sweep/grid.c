/**
 * Grids: parses axes and numbers the cells. A cell's number has one digit per axis; the last axis
 * is the lowest digit.
 */
#include "tools/sweep/grid.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qat_sweep_grid_free(qat_sweep_grid *grid)
{
    qat_arena_free(&grid->arena);
    *grid = (qat_sweep_grid){0};
}

int qat_sweep_grid_cells(const qat_sweep_grid *grid)
{
    int cells = 1;
    for (int i = 0; i < grid->n_axes; i++)
        cells *= grid->axes[i].n;
    return cells;
}

int qat_sweep_grid_axis_of(const qat_sweep_grid *grid, const char *key)
{
    for (int i = 0; i < grid->n_axes; i++)
        if (!strcmp(grid->axes[i].key, key))
            return i;
    return -1;
}

int qat_sweep_grid_index(const qat_sweep_grid *grid, int cell, int axis)
{
    for (int i = grid->n_axes - 1; i > axis; i--)
        cell /= grid->axes[i].n;
    return cell % grid->axes[axis].n;
}

const char *qat_sweep_grid_value(const qat_sweep_grid *grid, int cell, int axis)
{
    return grid->axes[axis].values[qat_sweep_grid_index(grid, cell, axis)];
}

/* ------------------------------------------------------------------ adding */

static qat_status check_axis(const qat_sweep_grid *grid, const qat_sweep_grid_axis *axis,
                             qat_error *err)
{
    if (qat_sweep_grid_axis_of(grid, axis->key) >= 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s is given twice", axis->key);
    if (grid->n_axes == QAT_SWEEP_MAX_AXES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "more than %d settings", QAT_SWEEP_MAX_AXES);
    if (axis->n < 1 || axis->n > QAT_SWEEP_MAX_CELLS / qat_sweep_grid_cells(grid))
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s: %s", axis->key,
                        axis->n < 1 ? "no values" : "the grid would have more than 10000 cells");
    for (int i = 0; i < axis->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(axis->values[i], axis->values[k]))
                return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s: the value %.80s is given twice",
                                axis->key, axis->values[i]);
    return QAT_OK;
}

static qat_status add_axis(qat_sweep_grid *grid, const qat_sweep_grid_axis *axis, qat_error *err)
{
    qat_status const st = check_axis(grid, axis, err);
    if (!st)
        grid->axes[grid->n_axes++] = *axis;
    return st;
}

qat_status qat_sweep_grid_add_values(qat_sweep_grid *grid, const char *key,
                                     const char *const *values, int n, qat_error *err)
{
    qat_sweep_grid_axis axis = {qat_arena_string(&grid->arena, key), n, NULL};
    axis.values = qat_arena_array(&grid->arena, (size_t)n, sizeof *axis.values);
    bool there = axis.key && axis.values;
    for (int i = 0; i < n && there; i++)
        there = (axis.values[i] = qat_arena_string(&grid->arena, values[i])) != NULL;
    return there ? add_axis(grid, &axis, err) : qat_out_of_memory(err, key);
}

/** Where the value at `at` ends: a comma or the end of the text. NULL if braces do not match. */
static char *end_of_value(char *at)
{
    if (*at != '{')
        return strpbrk(at, "{}") && strpbrk(at, "{}") < at + strcspn(at, ",")
                   ? NULL
                   : at + strcspn(at, ",");
    char *close = at + strcspn(at + 1, "{}") + 1;
    return *close == '}' && (!close[1] || close[1] == ',') ? close + 1 : NULL;
}

/** Cut the list at its commas, in place, and remove the braces around values. */
static qat_status split(qat_sweep_grid_axis *axis, char *list, qat_error *err)
{
    for (char *at = list, *end; at; at = end) {
        end = end_of_value(at);
        if (!end)
            return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s: braces do not match in '%.80s'",
                            axis->key, at);
        bool const more = *end != 0;
        bool const braces = *at == '{';
        end[braces ? -1 : 0] = 0;
        axis->values[axis->n] = at + braces;
        if (!*axis->values[axis->n++])
            return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s: value %d of the list is empty",
                            axis->key, axis->n);
        end = more ? end + 1 : NULL;
    }
    return QAT_OK;
}

qat_status qat_sweep_grid_add(qat_sweep_grid *grid, const char *text, qat_error *err)
{
    char *key = qat_arena_string(&grid->arena, text);
    const char **values = qat_arena_array(&grid->arena, strlen(text) + 1, sizeof *values);
    char *equals = key ? strchr(key, '=') : NULL;
    if (!key || !values)
        return qat_out_of_memory(err, text);
    if (!equals || equals == key)
        return qat_fail(err, QAT_ERR_ARGUMENT, "'%.200s': expected section.key=value,value,...",
                        text);
    *equals = 0;
    if (!equals[1])
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s: no values after '='", key);
    qat_sweep_grid_axis axis = {key, 0, values};
    qat_status const st = split(&axis, equals + 1, err);
    return st ? st : add_axis(grid, &axis, err);
}

/* ------------------------------------------------------------------ names */

/** Append to the name; characters that a folder name should not have are replaced. */
static void append(char name[QAT_SWEEP_NAME_MAX], size_t *used, const char *text, size_t count)
{
    static const char also[] = "-+_.,=";
    for (size_t i = 0; i < count; i++, (*used)++) {
        char const c = text[i];
        bool const kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || strchr(also, c);
        if (*used + 1 < QAT_SWEEP_NAME_MAX)
            name[*used] = kept ? c : '_';
    }
}

/** The last part of a path, without ".ini". */
static const char *stem(const char *path, size_t *count)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t const n = strlen(base);
    *count = n > 4 && !strcmp(base + n - 4, ".ini") ? n - 4 : n;
    return base;
}

qat_status qat_sweep_grid_name(const qat_sweep_grid *grid, int cell, char name[QAT_SWEEP_NAME_MAX],
                               qat_error *err)
{
    size_t used = 0, n;
    const char *first = stem(grid->n_axes ? qat_sweep_grid_value(grid, cell, 0) : "all", &n);
    append(name, &used, first, n);
    for (int i = 1; i < grid->n_axes; i++) {
        const char *value = qat_sweep_grid_value(grid, cell, i);
        if (grid->axes[i].n < 2)
            continue;
        append(name, &used, ",", 1);
        append(name, &used, grid->axes[i].key, strlen(grid->axes[i].key));
        append(name, &used, "=", 1);
        append(name, &used, value, strlen(value));
    }
    name[used < QAT_SWEEP_NAME_MAX ? used : QAT_SWEEP_NAME_MAX - 1] = 0;
    if (used < QAT_SWEEP_NAME_MAX)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%.100s...: the cell's name is longer than %d", name,
                    QAT_SWEEP_NAME_MAX - 1);
}

/** qsort: the names of cells, by their bytes. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static qat_status copy_name(const qat_sweep_grid *grid, int cell, qat_arena *arena,
                            const char **copy, qat_error *err)
{
    char name[QAT_SWEEP_NAME_MAX];
    qat_status const st = qat_sweep_grid_name(grid, cell, name, err);
    *copy = st ? NULL : qat_arena_string(arena, name);
    return st || *copy ? st : qat_out_of_memory(err, "the names of cells");
}

qat_status qat_sweep_grid_check_names(const qat_sweep_grid *grid, qat_error *err)
{
    qat_arena arena = {0};
    int const cells = qat_sweep_grid_cells(grid);
    const char **names = qat_arena_array(&arena, (size_t)cells, sizeof *names);
    qat_status st = names ? QAT_OK : qat_out_of_memory(err, "the names of cells");
    for (int i = 0; i < cells && !st; i++)
        st = copy_name(grid, i, &arena, &names[i], err);
    if (!st)
        qsort(names, (size_t)cells, sizeof *names, by_name);
    for (int i = 1; i < cells && !st; i++)
        if (!strcmp(names[i - 1], names[i]))
            st = qat_fail(err, QAT_ERR_ARGUMENT, "two cells have the name %s", names[i]);
    qat_arena_free(&arena);
    return st;
}

/** Does the name contain this part, between commas? */
static bool has_part(const char *name, const char *part, size_t count)
{
    for (const char *at = name; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, part, count) && (!at[count] || at[count] == ','))
            return true;
    }
    return false;
}

static bool fits(const char *name, const char *text)
{
    for (const char *at = text; *at;) {
        size_t const n = strcspn(at, ",");
        if (!has_part(name, at, n))
            return false;
        at += n + (at[n] == ',');
    }
    return true;
}

qat_status qat_sweep_grid_find(const qat_sweep_grid *grid, const char *text, int *cell,
                               qat_error *err)
{
    char name[QAT_SWEEP_NAME_MAX], first[QAT_SWEEP_NAME_MAX] = "";
    int found = 0;
    for (int i = 0; i < qat_sweep_grid_cells(grid); i++) {
        qat_status const st = qat_sweep_grid_name(grid, i, name, err);
        if (st)
            return st;
        if (!fits(name, text))
            continue;
        if (found++)
            return qat_fail(err, QAT_ERR_ARGUMENT, "'%.100s' fits both %.180s and %.180s", text,
                            first, name);
        *cell = i;
        memcpy(first, name, sizeof first);
    }
    if (found)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "'%.100s' is not a cell; the last cell is %.180s", text,
                    name);
}
