/**
 * The engine's kernels as text. The headers of lib/infer/kernels and of what they include are part
 * of the library, cut into pieces: a function, a type, an enum, a macro or a conditional, each with
 * the comment above it. A C file gets the pieces that its network reaches, in the headers' order.
 */
#ifndef QAT_EXPORT_C_PIECES_H
#define QAT_EXPORT_C_PIECES_H

#include "base/arena.h"
#include "qat/status.h"

#include <stdint.h>

/** A header: those that it includes are before it. After the last one, text is NULL. */
typedef struct co_header {
    const char *name, *text;
    size_t bytes;
} co_header;

extern const co_header co_headers[];

/** Some characters of a text. */
typedef struct co_span {
    const char *at;
    size_t n;
} co_span;

bool co_span_is(co_span s, const char *text);

typedef struct co_piece {
    co_span text; /* with the comment above it */
    co_span code; /* without it */
    const char *header;
    bool is_needed, is_followed; /* followed: what it names is needed as well */
} co_piece;

/** A name at top level, and the piece that declares it. */
typedef struct co_name {
    co_span name;
    int piece;
} co_name;

typedef struct co_pieces {
    co_piece *pieces;
    co_name *names;
    int n_pieces, n_names;
} co_pieces;

/** Cut all headers. QAT_ERR_NOMEM. */
qat_status co_cut(co_pieces *p, qat_arena *arena, qat_error *err);
/** The piece that declares a name, or NULL. */
const co_piece *co_piece_of(const co_pieces *p, co_span name);
/** Mark the piece of a name as needed; false: no piece declares it. */
bool co_need(co_pieces *p, const char *name);
/** Mark everything that needed pieces name, directly or not. */
void co_follow(co_pieces *p);

/**
 * The next word or sign of code: an identifier, a number, or one other character. Comments and
 * texts in quotes are left out. Empty at the end.
 */
co_span co_token(co_span *code);
bool co_is_identifier(co_span token);

#endif
