/** Private to this folder: the compiled messages of event.proto. */
#ifndef QAT_BOARD_MESSAGES_H
#define QAT_BOARD_MESSAGES_H

#include "base/bytes.h"

#include <event.pb-c.h>

/** Append a record of an event, whose wall time is set. */
void qat_board_record(qat_writer *to, Board__Event *event);

#endif
