/**
 * qat-train --progress full: curves, the slowest layers, memory and the time that is left, drawn in
 * place on a terminal. Lines that are printed meanwhile stand above it.
 */
#ifndef QAT_TOOLS_LIVE_VIEW_H
#define QAT_TOOLS_LIVE_VIEW_H

#include "qat/qat.h"

typedef struct live_view live_view;

/**
 * Start a view; it shows the title. NULL: there is no terminal for it, or no memory.
 * @param judged  what evaluations are on: "test"
 */
live_view *live_view_open(const char *title, const char *judged);
/** Take in an event of a run, and draw if it is time to. Not for events whose text is printed. */
void live_view_see(live_view *view, const qat_train_progress *progress);
/** Remove it before a line is printed; the next event draws it again. NULL is fine. */
void live_view_clear(live_view *view);
/** Draw it for the last time, and leave it there. The run must be over. NULL is fine. */
void live_view_close(live_view *view);

#endif
