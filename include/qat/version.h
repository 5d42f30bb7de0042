/**
 * The version of the headers that a program is compiled with. qat_version (runtime.h) and
 * qi_version (infer.h) give the version of the libraries that it runs with.
 */
#ifndef QAT_VERSION_H
#define QAT_VERSION_H

#define QAT_VERSION_MAJOR 0
#define QAT_VERSION_MINOR 1
#define QAT_VERSION_PATCH 0

/** One number to compare: 0.1.0 is 100, 1.2.3 is 10203. */
#define QAT_VERSION_NUMBER (QAT_VERSION_MAJOR * 10000 + QAT_VERSION_MINOR * 100 + QAT_VERSION_PATCH)

/** As text, "0.1.0". */
#define QAT_VERSION                 QAT_VERSION_TEXT_(QAT_VERSION_MAJOR, QAT_VERSION_MINOR, QAT_VERSION_PATCH)
#define QAT_VERSION_TEXT_(a, b, c)  QAT_VERSION_QUOTE_(a, b, c)
#define QAT_VERSION_QUOTE_(a, b, c) #a "." #b "." #c

#endif
