/** Preprocessing as C source: what pictures.c and sounds.c offer to preprocessing.c. */
#ifndef QAT_EXPORT_C_PREPROCESSING_H
#define QAT_EXPORT_C_PREPROCESSING_H

#include "export/c/out.h"

/** With the caller's arena, the parameter for memory, and a comma. */
const char *co_memory_parameter(const co *o);
/** The macro that says how much memory that is. */
void co_write_memory_bytes(co *o, size_t bytes);

/**
 * Behind the struct preprocessing_memory: where one is, unless the caller has it.
 * @return the line of a function that makes `m` point to it
 */
const char *co_place_memory(co *o);

/* ------------------------------------------------------------------ pictures.c */

void co_need_pictures(co *o);
/** May a side be above 32767, of the picture or resized? Then kernels divide 64 bits (QK_LARGE). */
bool co_has_large_pictures(const co *o);
qat_status co_write_pictures(co *o);
void co_write_pictures_header(co *o);
/** Sums of squeezed rows, in words. */
size_t co_picture_sums(const qi_preprocessing *p);

/* ------------------------------------------------------------------ sounds.c */

void co_need_sounds(co *o);
void co_write_sounds(co *o);
void co_write_sounds_header(co *o);
/** Is the working memory of a frame in the arena, where nothing is between runs? */
bool co_sounds_use_arena(const co *o);
/** Bytes of the state, and of the working memory. */
enum { CO_SOUND_BYTES = 644, CO_SOUND_WORK_BYTES = 4096 };

#endif
