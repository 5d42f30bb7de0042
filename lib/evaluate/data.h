/** Private to libqat: gives batches to networks. */
#ifndef QAT_EVALUATE_DATA_H
#define QAT_EVALUATE_DATA_H

#include "qat/train.h"

/** Check that the samples fit the network: size, type, number of classes. */
qat_status qat_input_check(const qat_input_info *input, const qat_dataset *data, qat_error *err);

/** Check that two networks can take the same samples: their size, type, mean and std are equal. */
qat_status qat_input_equal(const qat_input_info *reference, const qat_input_info *model,
                           qat_error *err);

/**
 * Put a batch into a planned graph: values into its input, class numbers into its label input (if
 * it has one). Sets the graph's batch size.
 */
qat_status qat_feed_graph(qat_graph *graph, const qat_batch *batch, int count, qat_error *err);

/** How data are opened, and who is told: of skipped pictures, and how far the check is. */
typedef struct qat_data_look {
    bool (*tick)(void *context, int64_t done, int64_t total); /* false: stop */
    void *context;
    const qat_log *log;
    bool undrawn; /* as in qat_dataset_options */
} qat_data_look;

/** qat_recipe_open_data; look may be NULL. */
qat_status qat_open_data_looking(qat_dataset **dataset, const qat_recipe *recipe, const char *spec,
                                 qat_split split, const qat_data_look *look, qat_error *err);

/** Leave out the samples whose pictures cannot be decoded. */
qat_status qat_skip_broken(qat_dataset *data, const qat_data_look *look, qat_error *err);

/**
 * data.central_crop in millionths, as a .qm has it: the share is millionths / 1e6. More than six
 * decimals are an error.
 */
qat_status qat_central_crop_of(int *millionths, const qat_recipe *recipe, qat_error *err);

/** data.memory in bytes. */
uint64_t qat_data_memory(const qat_recipe *recipe);

/** Options for reading training data: shuffled, augmented, complete batches. */
qat_loader_options qat_training_loader(const qat_recipe *recipe);

#endif
