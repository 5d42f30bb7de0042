/** The parts of qat-debug: how it tells what was found. */
#ifndef QAT_TOOLS_DEBUG_H
#define QAT_TOOLS_DEBUG_H

#include "tools/common/tool.h"

#include "base/bytes.h"

/** What was compared, for the heads of tables. */
typedef struct debug_told {
    const qat_debug *debug;
    const char *path, *data;
    const char *against; /* --against, or NULL */
    bool has_float;      /* compared with a float network; else with the .qm's own real numbers */
    bool has_dump;
} debug_told;

/** The layers as a table, where the networks part, and what is wrong, the worst layer first. */
void debug_print(const debug_told *t);
qat_status debug_write_csv(const debug_told *t, const char *path, qat_error *err);
qat_status debug_write_json(const debug_told *t, const char *path, qat_error *err);
/** The errors by layer, as path.png and path.svg; or, path NULL, appended to svg. */
qat_status debug_plot(const debug_told *t, const char *path, qat_writer *svg, qat_error *err);

/** The head of column c of the table, 0 .. debug_columns() - 1; NULL: it is not shown. */
int debug_columns(void);
const char *debug_head(const debug_told *t, int c);
/** Its figure of a layer. Returns text. */
const char *debug_cell(char text[TOOL_FIGURE_MAX], int c, const qat_debug_layer *layer);
/** Its worst channels, the worst first. Returns text. */
const char *debug_channels(char text[TOOL_FIGURE_MAX], const qat_debug_layer *layer);
/** The layer in which a qat_debug_pair of networks first parts, or NULL; what it is that parts. */
const qat_debug_layer *debug_part(const debug_told *t, int pair, const char **what);

#endif
