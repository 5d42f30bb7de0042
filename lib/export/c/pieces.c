#include "export/c/pieces.h"

#include <string.h>

/* ------------------------------------------------------------------ tokens */

bool co_span_is(co_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool co_is_identifier(co_span token)
{
    return token.n && is_letter(token.at[0]);
}

static void skip(co_span *s, size_t n)
{
    n = n < s->n ? n : s->n;
    s->at += n;
    s->n -= n;
}

/** The characters up to the end of a comment or of a text in quotes; 0: neither begins here. */
static size_t length_of_skipped(co_span s)
{
    size_t n = 2;
    if (s.n >= 2 && memcmp(s.at, "/*", 2) == 0) {
        while (n < s.n && memcmp(s.at + n - 1, "*/", 2) != 0)
            n++;
        return n + 1;
    }
    if (s.at[0] != '"' && s.at[0] != '\'')
        return 0;
    for (n = 1; n < s.n && s.at[n] != s.at[0]; n++)
        n += s.at[n] == '\\';
    return n + 1;
}

co_span co_token(co_span *code)
{
    while (code->n) {
        size_t const skipped = length_of_skipped(*code);
        if (!skipped && *code->at != ' ' && *code->at != '\n' && *code->at != '\\')
            break;
        skip(code, skipped ? skipped : 1);
    }
    co_span token = {code->at, 0};
    if (!code->n)
        return token;
    bool const is_word = is_letter(*code->at) || is_digit(*code->at);
    do
        skip(code, 1);
    while (is_word && code->n && (is_letter(*code->at) || is_digit(*code->at)));
    token.n = (size_t)(code->at - token.at);
    return token;
}

/* ------------------------------------------------------------------ lines into pieces */

/** Where the cutter is in a header. */
struct cutter {
    co_pieces *p;
    const char *header;
    co_span piece;   /* what was read of the current one */
    int braces, ifs; /* that are open in it */
    bool is_in_comment, has_code;
    bool is_cpp; /* in a conditional of C++, whose braces do not count */
    const char *code;
};

static void begin_piece(struct cutter *c)
{
    c->piece = (co_span){NULL, 0};
    c->braces = c->ifs = 0;
    c->has_code = c->is_cpp = false;
    c->code = NULL;
}

static void end_piece(struct cutter *c)
{
    const char *end = c->piece.at + c->piece.n;
    c->p->pieces[c->p->n_pieces++] = (co_piece){
        .text = c->piece, .code = {c->code, (size_t)(end - c->code)}, .header = c->header};
    begin_piece(c);
}

static bool starts_with(co_span line, const char *text)
{
    size_t const n = strlen(text);
    return line.n >= n && memcmp(line.at, text, n) == 0;
}

static bool contains(co_span line, const char *text)
{
    for (size_t n = strlen(text); line.n >= n; skip(&line, 1))
        if (memcmp(line.at, text, n) == 0)
            return true;
    return false;
}

/** The last character of a line that is code, ' ' if there is none; counts braces. */
static char read_code(struct cutter *c, co_span line)
{
    char last = ' ';
    while (line.n) {
        if (c->is_in_comment) {
            c->is_in_comment = !starts_with(line, "*/");
            skip(&line, c->is_in_comment ? 1 : 2);
            continue;
        }
        if (starts_with(line, "/*")) {
            c->is_in_comment = true;
            skip(&line, 2);
            continue;
        }
        if (*line.at != ' ' && !c->has_code) {
            c->has_code = true;
            c->code = line.at;
        }
        if (*line.at != ' ')
            last = *line.at;
        c->braces += c->is_cpp ? 0 : (*line.at == '{') - (*line.at == '}');
        size_t const quoted = length_of_skipped(line);
        skip(&line, quoted ? quoted : 1);
    }
    return last;
}

/** A directive opens or closes a conditional. */
static void read_directive(struct cutter *c, co_span line)
{
    if (starts_with(line, "#if")) {
        c->is_cpp = c->is_cpp || contains(line, "__cplusplus");
        c->ifs++;
    } else if (starts_with(line, "#endif")) {
        c->ifs--;
    }
}

/** Lines that belong to a header, not to a piece: its guard, what it includes, pragmas. */
static bool is_of_header(const struct cutter *c, co_span line)
{
    bool const guard = (starts_with(line, "#ifndef") || starts_with(line, "#define")) &&
                       line.n > 2 && memcmp(line.at + line.n - 2, "_H", 2) == 0;
    return !c->ifs && (guard || starts_with(line, "#include") || starts_with(line, "#pragma") ||
                       starts_with(line, "#endif"));
}

static void read_line(struct cutter *c, co_span line)
{
    if (!c->is_in_comment && !c->braces && !c->ifs && (!line.n || is_of_header(c, line))) {
        begin_piece(c); /* also forgets a comment that is above nothing */
        return;
    }
    if (!c->piece.at)
        c->piece.at = line.at;
    if (!c->is_in_comment && starts_with(line, "#"))
        read_directive(c, line);
    char const last = read_code(c, line);
    c->piece.n = (size_t)(line.at + line.n - c->piece.at);
    bool const ends = c->code && *c->code == '#' ? last != '\\' : last == ';' || last == '}';
    if (c->has_code && ends && !c->is_in_comment && !c->braces && !c->ifs)
        end_piece(c);
}

static void cut_header(co_pieces *p, const co_header *h)
{
    struct cutter c = {.p = p, .header = h->name};
    const char *at = h->text, *end = h->text + h->bytes;
    begin_piece(&c);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        read_line(&c, (co_span){at, (size_t)(stop - at)});
        at = stop + 1;
    }
}

/* ------------------------------------------------------------------ what they declare */

static void declare(co_pieces *p, int piece, co_span name)
{
    if (co_is_identifier(name) && !co_piece_of(p, name))
        p->names[p->n_names++] = (co_name){name, piece};
}

/** Declare what a declaration at top level declares: one, or the constants of an enum. */
static void declare_one(co_pieces *p, int piece, co_span code)
{
    co_span last = {NULL, 0};
    bool is_enum = false, is_constant = false;
    int depth = 0;
    for (co_span t = co_token(&code); t.n; t = co_token(&code)) {
        if (depth == 0 && (*t.at == '(' || *t.at == '[' || *t.at == '=' || *t.at == ';')) {
            declare(p, piece, last);
            return;
        }
        is_enum = is_enum || (depth == 0 && co_span_is(t, "enum"));
        depth += (*t.at == '{') - (*t.at == '}');
        if (is_constant && depth == 1)
            declare(p, piece, t);
        is_constant = is_enum && depth == 1 && (*t.at == '{' || *t.at == ',');
        if (depth == 0)
            last = t;
    }
}

/** Of a conditional or a macro: what #define defines, and what begins in the first column. */
static void declare_lines(co_pieces *p, int piece, co_span code)
{
    while (code.n) {
        const char *stop = memchr(code.at, '\n', code.n);
        size_t const n = stop ? (size_t)(stop - code.at) : code.n;
        co_span line = {code.at, n};
        if (starts_with(line, "#define ")) {
            skip(&line, strlen("#define "));
            declare(p, piece, co_token(&line));
        } else if (n && is_letter(*line.at)) {
            declare_one(p, piece, code);
        }
        skip(&code, n + 1);
    }
}

const co_piece *co_piece_of(const co_pieces *p, co_span name)
{
    for (int i = 0; i < p->n_names; i++)
        if (p->names[i].name.n == name.n && memcmp(p->names[i].name.at, name.at, name.n) == 0)
            return &p->pieces[p->names[i].piece];
    return NULL;
}

/* ------------------------------------------------------------------ what is needed */

bool co_need(co_pieces *p, const char *name)
{
    const co_piece *piece = co_piece_of(p, (co_span){name, strlen(name)});
    if (piece)
        p->pieces[piece - p->pieces].is_needed = true;
    return piece;
}

static void follow(co_pieces *p, co_piece *piece)
{
    co_span code = piece->code;
    piece->is_followed = true;
    for (co_span t = co_token(&code); t.n; t = co_token(&code)) {
        const co_piece *named = co_is_identifier(t) ? co_piece_of(p, t) : NULL;
        if (named)
            p->pieces[named - p->pieces].is_needed = true;
    }
}

void co_follow(co_pieces *p)
{
    bool is_new = true;
    while (is_new) {
        is_new = false;
        for (int i = 0; i < p->n_pieces; i++)
            if (p->pieces[i].is_needed && !p->pieces[i].is_followed) {
                follow(p, &p->pieces[i]);
                is_new = true;
            }
    }
}

/* ------------------------------------------------------------------ all */

/** Bounds: of pieces, the lines; of names, the commas, brackets and ends of declarations. */
static void count(size_t *lines, size_t *names)
{
    *lines = *names = 1;
    for (const co_header *h = co_headers; h->text; h++)
        for (size_t i = 0; i < h->bytes; i++) {
            *lines += h->text[i] == '\n';
            *names += h->text[i] == '\n' || strchr(",;([={", h->text[i]) != NULL;
        }
}

qat_status co_cut(co_pieces *p, qat_arena *arena, qat_error *err)
{
    size_t lines, names;
    count(&lines, &names);
    *p = (co_pieces){.pieces = qat_arena_array(arena, lines, sizeof *p->pieces),
                     .names = qat_arena_array(arena, names, sizeof *p->names)};
    if (!p->pieces || !p->names)
        return qat_out_of_memory(err, NULL);
    for (const co_header *h = co_headers; h->text; h++)
        cut_header(p, h);
    for (int i = 0; i < p->n_pieces; i++)
        (p->pieces[i].code.at[0] == '#' ? declare_lines : declare_one)(p, i, p->pieces[i].code);
    return QAT_OK;
}
