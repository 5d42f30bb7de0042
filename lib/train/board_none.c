/** Instead of board.c and lib/board, in a build without protobuf-c. */
#include "train/board.h"

#include "recipe/recipe.h"

qat_status qat_board_check(const qat_recipe *recipe, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    if (!recipe->output.tensorboard)
        return QAT_OK;
    qat_recipe_where(recipe, "output", "tensorboard", where);
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: output.tensorboard: this program was built without protobuf-c, so it "
                    "cannot write event files (Debian: libprotobuf-c-dev, protobuf-c-compiler)",
                    where);
}

qat_status qat_board_open(qat_trainer *t, qat_error *err)
{
    return QAT_OK;
}

void qat_board_close(qat_board *board)
{
}

void qat_board_watch(qat_trainer *t, qat_evaluated how)
{
}

void qat_board_unwatch(qat_trainer *t)
{
}

qat_status qat_board_row(qat_board *board, const qat_train_progress *row, qat_error *err)
{
    return QAT_OK;
}

void qat_board_end(qat_board *board)
{
}

qat_status qat_board_flush(qat_board *board, qat_error *err)
{
    return QAT_OK;
}
