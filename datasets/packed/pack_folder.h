/** The folder that packing writes to: what may be replaced in it, and what it holds meanwhile. */
#ifndef QAT_DATASETS_PACK_FOLDER_H
#define QAT_DATASETS_PACK_FOLDER_H

#include "datasets/dataset_kind.h"

/** How the names of a split's shards begin: of training, of test data. */
extern const char *const qat_pack_prefixes[2];

typedef struct qat_pack_folder {
    int lock; /* -1: none */
    char marker[4096];
} qat_pack_folder;

/**
 * Make the folder ready for the splits of `data` (NULL: that one is not packed), and write
 * classes.txt. Meanwhile the file PACKING in it names the splits, and no other process may pack
 * into it. Close the folder also after an error.
 *
 * Errors, before anything is removed: the data are read from this folder; shards of these splits,
 * or a classes.txt with other content, are there (overwrite allows it, and so does a PACKING that
 * names the split); PACKING names a split that is not packed now.
 */
qat_status qat_pack_folder_begin(qat_pack_folder *f, const qat_dataset *const data[2],
                                 const char *folder, bool overwrite, qat_error *err);
/** All shards are there: remove PACKING. */
qat_status qat_pack_folder_end(qat_pack_folder *f, qat_error *err);
void qat_pack_folder_close(qat_pack_folder *f);

#endif
