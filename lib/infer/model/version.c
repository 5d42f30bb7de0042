/** The engine's version. meson.build passes its own numbers, so that the two cannot differ. */
#include "qat/infer.h"

#if defined QAT_BUILD_NUMBER && QAT_VERSION_NUMBER != QAT_BUILD_NUMBER
#error "meson.build and include/qat/version.h name different versions"
#endif

const char *qi_version(void)
{
    return QAT_VERSION;
}

int qi_version_number(void)
{
    return QAT_VERSION_NUMBER;
}
