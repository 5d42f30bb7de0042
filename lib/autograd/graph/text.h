/** Words shared by the writer and the reader of graphs as text. */
#ifndef QAT_AUTOGRAD_TEXT_H
#define QAT_AUTOGRAD_TEXT_H

extern const char qat_core_text_first_line[];
extern const char *const qat_core_text_inits[3]; /* names of the values of qat_init */

#endif
