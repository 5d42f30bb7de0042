/** Importing a .tflite file made in memory: what must import, and what must be refused. */
#ifndef QAT_TESTS_TFLITE_IMPORT_H
#define QAT_TESTS_TFLITE_IMPORT_H

#include "common/tflite_build.h"
#include "qat/convert.h"

/** Import what must import, with known answers, and open it: qi_host_close() it. */
void test_open_built(qi_host **host, const build_model *model);
/** The import must fail with a message that has these words. */
void test_refuse_built(const build_model *model, const char *says);

#endif
