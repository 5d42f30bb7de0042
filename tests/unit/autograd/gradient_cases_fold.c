/** Cases of the ops that fold batch norm (lib/fold). */
#include "unit/autograd/gradient_cases.h"

#include <stddef.h>

#define Z(...)      INPUT(FILL_PLAIN, KIND_DATA, __VA_ARGS__)
#define WEIGHT(...) INPUT(FILL_PLAIN, KIND_PARAM, __VA_ARGS__)
#define GAMMA(c)    INPUT(FILL_POSITIVE, KIND_PARAM, c)
#define BETA(c)     INPUT(FILL_PLAIN, KIND_PARAM, c)
#define MEAN(c)     INPUT(FILL_PLAIN, KIND_STATE, c)
#define VARIANCE(c) INPUT(FILL_POSITIVE, KIND_STATE, c)
#define STEPS       INPUT(FILL_POSITIVE, KIND_STATE, 1)
#define BN(c)       GAMMA(c), BETA(c), MEAN(c), VARIANCE(c), STEPS

/* bn_fold_train: before its delay, with batch statistics (two_pass: the last input; one_pass),
 * frozen. */
const gradient_case gradient_fold_cases[] = {
    EVAL("bn_fold_weights", "axis=0", WEIGHT(4, 3, 3, 2), GAMMA(4), VARIANCE(4)),
    EVAL("bn_fold_weights", "axis=3 epsilon=0.1", WEIGHT(1, 3, 2, 5), GAMMA(5), VARIANCE(5)),
    TRAIN(4, "bn_fold_weights", "delay=5", WEIGHT(4, 3), GAMMA(4), VARIANCE(4)),
    TRAIN(5, "bn_fold_weights", "delay=5", WEIGHT(4, 3), GAMMA(4), VARIANCE(4)),
    EVAL("bn_fold_bias", "", GAMMA(4), BETA(4), MEAN(4), VARIANCE(4)),
    EVAL("bn_fold_bias", "epsilon=0.1", GAMMA(3), BETA(3), MEAN(3), VARIANCE(3), BETA(3)),
    TRAIN(4, "bn_fold_train", "delay=5", Z(3, 4, 3, 2), BN(2), Z(3, 4, 3, 2)),
    TRAIN(5, "bn_fold_train", "delay=5", Z(3, 4, 3, 2), BN(2), Z(3, 4, 3, 2)),
    TRAIN(0, "bn_fold_train", "", Z(1, 3, 5, 3), BN(3), Z(1, 3, 5, 3)),
    TRAIN(4, "bn_fold_train", "delay=5", Z(3, 4, 3, 2), BN(2)),
    TRAIN(5, "bn_fold_train", "epsilon=0.01", Z(3, 4, 3, 2), BN(2)),
    TRAIN(0, "bn_fold_train", "", Z(5, 3), BN(3)),
    TRAIN(6, "bn_fold_train", "freeze=6", Z(3, 4, 3, 2), BN(2), Z(3, 4, 3, 2)),
    EVAL("bn_fold_train", "", Z(3, 4, 3, 2), BN(2)),
    {.op = NULL},
};
