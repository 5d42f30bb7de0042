/**
 * Records of event files, which TensorBoard reads: each function appends one to a writer. After a
 * failed allocation the writer's `failed` is set.
 *
 * A record is the length (u64) of an event, a checksum of the length, the event, and its checksum
 * (base/checksums/crc32c.h). An event holds a step and one value. Its wall time is the step, in
 * seconds: files of a run hold no clock. So TensorBoard's axis of relative time counts steps.
 */
#ifndef QAT_BOARD_EVENTS_H
#define QAT_BOARD_EVENTS_H

#include "base/bytes.h"
#include "board/histogram.h"
#include "qat/graph.h"

/** Bytes around an event. */
enum { QAT_RECORD_HEAD = 12, QAT_RECORD_TAIL = 4 };

/** The first record of a file. */
void qat_event_version(qat_writer *to);
/** The network, with the shapes of its values. Its file may hold one graph. */
void qat_event_graph(qat_writer *to, const qat_graph *graph);

/** A setting of a run, for TensorBoard's table of hyperparameters. */
typedef struct qat_board_setting {
    char *name, *value;
    enum { QAT_SETTING_TEXT, QAT_SETTING_NUMBER, QAT_SETTING_BOOL } kind;
    double number; /* NUMBER, BOOL */
} qat_board_setting;
void qat_event_settings(qat_writer *to, const qat_board_setting *settings, int count);
/** The run has reached its end. */
void qat_event_end(qat_writer *to, int64_t step);

void qat_event_scalar(qat_writer *to, int64_t step, const char *tag, double value);
void qat_event_histogram(qat_writer *to, int64_t step, const char *tag,
                         const qat_board_histogram *h);
/** A PNG of 1 (gray) or 3 (RGB) channels. */
void qat_event_png(qat_writer *to, int64_t step, const char *tag, int height, int width,
                   int channels, const void *png, size_t count);
/** Markdown. */
void qat_event_text(qat_writer *to, int64_t step, const char *tag, const char *text);

/** What an event says when a run is resumed: its step, and whether it is qat_event_end's. */
typedef struct qat_event_look {
    int64_t step;
    bool end;
    bool no_memory; /* so it could not be read */
} qat_event_look;
/** Look at the bytes of an event. false: they are no event, or there is no memory. */
bool qat_event_see(qat_event_look *look, const void *event, size_t count);

#endif
