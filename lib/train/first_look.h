/** The data of a run, before its first step: what they are, whether all of them can be read, and
 *  whether they are those that a resumed run began with. */
#ifndef QAT_TRAIN_FIRST_LOOK_H
#define QAT_TRAIN_FIRST_LOOK_H

#include "train/trainer.h"

/** What data.check says. */
typedef enum qat_check_level {
    QAT_CHECK_AUTO,
    QAT_CHECK_FULL,
    QAT_CHECK_ENDS,
    QAT_CHECK_NO
} qat_check_level;

/** With data.check = auto, this many pictures are decoded; of more only the ends are looked at. */
enum { QAT_CHECK_DECODED_MAX = 20000 };

/** Open both splits, broken pictures left out where the recipe says so; tell what they are. Refuses
 *  data with one class alone, and labels that no checkpoint could hold. */
qat_status qat_trainer_open_data(qat_trainer *t, qat_error *err);

/** Look at every picture of both splits, as data.check says. The error names the first broken ones.
 *  Left out where a resumed run's data are what they were, unless data.check says how. */
qat_status qat_trainer_check_pictures(qat_trainer *t, qat_error *err);

/** Compare with the data that the checkpoint's run began with. A checkpoint of an older version
 * does not say what they were: its run cannot be resumed. */
qat_status qat_trainer_same_data(qat_trainer *t, const qat_checkpoint *c, qat_error *err);

/** Put the digests into a checkpoint. */
qat_status qat_trainer_copy_digests(qat_checkpoint *c, const qat_trainer *t, qat_error *err);

#endif
