/** Data in the form that a .qm takes. */
#ifndef QAT_TOOLS_MODEL_DATA_H
#define QAT_TOOLS_MODEL_DATA_H

#include "tools/common/model.h"

typedef struct tool_model_data {
    qat_input_info input;
    qat_dataset *data;
    qat_recipe
        *own; /* without a recipe of the user: it has the size of the model's pictures only */
} tool_model_data;

/**
 * Open the test data of a recipe, or those that --data names (NULL: the recipe's), as the model's
 * preprocessing says. Refuses data that the model cannot take. Close it also after a failure.
 * @param recipe        NULL: none
 * @param central_crop  --central-crop; 0: as the model says
 */
qat_status tool_model_data_open(tool_model_data *of, const tool_model *m, const qat_recipe *recipe,
                                const char *spec, double central_crop, qat_error *err);
void tool_model_data_close(tool_model_data *of); /* a zeroed struct is fine */

/** The kind of --data if it names picture files that can be cropped, or NULL. */
const char *tool_picture_kind(const char *data);

#endif
