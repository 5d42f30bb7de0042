/**
 * What a run writes for TensorBoard (output.tensorboard):
 * dir/tensorboard/events.out.tfevents.0.qat.
 *
 * It has scalars with each row of log.csv; with each evaluation also histograms of weights,
 * activations and scales, and the worst answers; at its start the graph and the settings. Nothing
 * of it touches the training: it reads the trained parameters, and runs graphs of its own.
 */
#ifndef QAT_TRAIN_BOARD_H
#define QAT_TRAIN_BOARD_H

#include "train/trainer.h"

/** Can this build write such files? */
qat_status qat_board_check(const qat_recipe *recipe, qat_error *err);
/** Start t->board if the recipe asks for it, after the logs: it goes on behind their last row. */
qat_status qat_board_open(qat_trainer *t, qat_error *err);
void qat_board_close(qat_board *board); /* NULL is fine, as for all of these */

/** The test data are about to be evaluated in this way: look on. */
void qat_board_watch(qat_trainer *t, qat_evaluated how);
/** The evaluations are over. */
void qat_board_unwatch(qat_trainer *t);
/** Add what belongs to a row. qat_board_flush writes it. */
qat_status qat_board_row(qat_board *board, const qat_train_progress *row, qat_error *err);
/** The run has reached its last step. */
void qat_board_end(qat_board *board);
qat_status qat_board_flush(qat_board *board, qat_error *err);

#endif
