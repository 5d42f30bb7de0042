/** Networks of recipes without their data, for targets that build what a text describes. */
#ifndef QAT_TESTS_FUZZ_NETWORK_H
#define QAT_TESTS_FUZZ_NETWORK_H

#include "qat/train.h"

/** The built-in ops, and no plugin. The first call makes it; it goes at exit. */
const qat_registry *fuzz_registry(void);
/** No plugins; made and freed in the same way. */
const qat_plugins *fuzz_no_plugins(void);

/**
 * Make the input of a recipe's network without its data, as `qat-train --dry-run` does. If the
 * recipe does not give the size, it is a small one.
 */
qat_status fuzz_input(qat_input_info *input, const qat_recipe *recipe, qat_error *err);

/** Are values (parameters and feature maps) and multiply-adds few enough to be computed often? */
bool fuzz_network_is_small(const qat_graph *graph);

#endif
