/**
 * Code in the stricter form that rule sets such as MISRA C ask for: every body in braces, and
 * memcpy and memset without a value.
 */
#include "export/c/out.h"

#include <string.h>

/** Code that is copied, and where to. */
struct copier {
    co_span rest;
    qat_writer *to;
};

static void copy(struct copier *c, size_t n)
{
    qat_write_text(c->to, "%.*s", (int)n, c->rest.at);
    c->rest.at += n;
    c->rest.n -= n;
}

/** The next word or sign, which is not copied yet. */
static co_span peek(const struct copier *c)
{
    co_span ahead = c->rest;
    return co_token(&ahead);
}

static bool is_next(const struct copier *c, const char *word)
{
    return co_span_is(peek(c), word);
}

/** Copy what stands before the next token, and the token. */
static void copy_token(struct copier *c)
{
    co_span const t = peek(c);
    copy(c, (size_t)(t.at - c->rest.at) + t.n);
}

/** Copy up to this sign, which is in no brackets. */
static void copy_to(struct copier *c, char sign)
{
    int depth = 0;
    while (peek(c).n) {
        char const next = *peek(c).at;
        depth += next == '(' || next == '[' || next == '{';
        depth -= next == ')' || next == ']' || next == '}';
        copy_token(c);
        if (next == sign && depth == 0)
            return;
    }
}

/** The blanks before a place in its line. */
static size_t indentation(const char *text, const char *at)
{
    size_t n = 0;
    while (at > text && at[-1] != '\n')
        at--;
    while (at[n] == ' ')
        n++;
    return n;
}

static void copy_statement(struct copier *c, const char *text);

/** What follows if (..), else and the like; blanks: of their line. */
static void copy_body(struct copier *c, const char *text, size_t blanks)
{
    bool const has_braces = is_next(c, "{");
    if (!has_braces)
        qat_write_text(c->to, " {");
    copy_statement(c, text);
    if (!has_braces)
        qat_write_text(c->to, "\n%*s}", (int)blanks, "");
}

static void copy_if(struct copier *c, const char *text, size_t blanks)
{
    copy_token(c);
    copy_to(c, ')');
    copy_body(c, text, blanks);
    if (!is_next(c, "else"))
        return;
    copy_token(c);
    if (is_next(c, "if"))
        copy_if(c, text, blanks);
    else
        copy_body(c, text, blanks);
}

static void copy_do(struct copier *c, const char *text, size_t blanks)
{
    copy_token(c);
    copy_body(c, text, blanks);
    copy_to(c, ';');
}

static void copy_block(struct copier *c, const char *text)
{
    copy_token(c);
    while (peek(c).n && !is_next(c, "}"))
        copy_statement(c, text);
    copy_token(c);
}

/** A line that begins with '#', with the rest of it and the lines that continue it. */
static void copy_directive(struct copier *c)
{
    const char *end = c->rest.at + c->rest.n, *stop = peek(c).at;
    do
        stop = memchr(stop + 1, '\n', (size_t)(end - stop - 1));
    while (stop && stop[-1] == '\\');
    copy(c, stop ? (size_t)(stop - c->rest.at) : c->rest.n);
}

static void copy_statement(struct copier *c, const char *text)
{
    co_span const t = peek(c);
    size_t const blanks = indentation(text, t.at);
    if (co_span_is(t, "{")) {
        copy_block(c, text);
    } else if (co_span_is(t, "if")) {
        copy_if(c, text, blanks);
    } else if (co_span_is(t, "do")) {
        copy_do(c, text, blanks);
    } else if (co_span_is(t, "for") || co_span_is(t, "while") || co_span_is(t, "switch")) {
        copy_token(c);
        copy_to(c, ')');
        copy_body(c, text, blanks);
    } else if (co_span_is(t, "case") || co_span_is(t, "default")) {
        copy_to(c, ':');
    } else if (co_span_is(t, "#")) {
        copy_directive(c);
    } else if (co_span_is(t, "memcpy") || co_span_is(t, "memset")) {
        copy(c, (size_t)(t.at - c->rest.at));
        qat_write_text(c->to, "(void)");
        copy_to(c, ';');
    } else {
        copy_to(c, ';');
    }
}

/** A function, another declaration, or a directive, outside all functions. */
static void copy_declaration(struct copier *c, const char *text)
{
    co_span const t = peek(c);
    if (co_span_is(t, "#")) {
        copy_directive(c);
        return;
    }
    bool const has_fields =
        co_span_is(t, "typedef") || co_span_is(t, "enum") || co_span_is(t, "struct");
    while (peek(c).n && !has_fields && !is_next(c, "=") && !is_next(c, ";")) {
        if (is_next(c, "{")) {
            copy_block(c, text);
            return;
        }
        copy_token(c);
    }
    copy_to(c, ';');
}

void co_write_strict(qat_writer *w, const co_piece *piece)
{
    struct copier c = {piece->text, w};
    while (peek(&c).n)
        copy_declaration(&c, piece->text.at);
    copy(&c, c.rest.n);
}
