#include "tools/report/html.h"

#include "tools/common/tool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{--page:#fff;--ink:#111;--line:#ddd;--mild:#555}"
    "@media(prefers-color-scheme:dark){:root{--page:#16181b;--ink:#e8e8e8;--line:#3a3d42;"
    "--mild:#aaa}}"
    "body{font:16px/1.45 system-ui,sans-serif;background:var(--page);color:var(--ink);"
    "max-width:70rem;margin:0 auto;padding:1rem}"
    "h1,h2,h3,p,td,th,summary{overflow-wrap:anywhere}"
    "h2{border-top:2px solid var(--line);padding-top:.8rem;margin-top:2rem}"
    ".wide{overflow-x:auto;margin:.5rem 0}"
    "table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}"
    "td,th{border-bottom:1px solid var(--line);padding:.2rem .5rem;text-align:right;"
    "overflow-wrap:normal}"
    "td:first-child,th:first-child,.left2 td:nth-child(2),.left2 th:nth-child(2),"
    ".texts td,.texts th{text-align:left}td:not(:first-child){white-space:nowrap}"
    ".texts td:not(:first-child){overflow-wrap:anywhere;white-space:normal}"
    ".texts td:first-child{overflow-wrap:normal}"
    "figure{margin:1rem 0}figure svg{width:100%;max-width:44rem;height:auto;"
    "display:block}"
    "figure.paper{--page:#fff;--ink:#111;--line:#ddd}"
    "figure.paper svg{min-width:34rem;max-width:52rem}"
    ".chart{margin:1rem 0}.chart figure{margin:0 0 .3rem}"
    "@media(min-width:56rem){.chart{display:inline-block;vertical-align:top;width:48%;"
    "margin:1rem 1% 1rem 0}}"
    "summary{color:var(--mild);cursor:pointer;font-size:.85rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}"
    ".worst{display:flex;flex-wrap:wrap;gap:.8rem}.worst figure{width:8.5rem;margin:0;"
    "font-size:.8rem}.worst img{width:8rem;image-rendering:pixelated;display:block}"
    ".worst .large{width:15rem}.worst .large svg{width:15rem}.worst .large "
    "img{display:inline-block;"
    "width:4.8rem;margin-right:.2rem}"
    "@media print{:root{--page:#fff;--ink:#000;--line:#ccc;--mild:#444}"
    "body{max-width:none;padding:0;font-size:11px}figure.paper svg{min-width:0;max-width:30rem}"
    ".chart{display:inline-block;vertical-align:top;width:48%;margin:.5rem 1% .5rem 0}"
    ".chart,figure,tr{break-inside:avoid}h2,h3{break-after:avoid}.wide{overflow:visible}}";

/* ------------------------------------------------------------------ text */

/** The shapes of letters, each once in a page: where it stands in the page's bytes. */
static struct glyph {
    size_t at, n;
} glyphs[1024];
enum { MOST_GLYPHS = sizeof glyphs / sizeof *glyphs, MOST_LOCAL = 256 };
static int n_glyphs, figures;

void html_text(qat_writer *page, const char *text)
{
    for (const char *c = tool_shown(text); *c; c++)
        switch (*c) {
        case '<':
            qat_write_text(page, "&lt;");
            break;
        case '>':
            qat_write_text(page, "&gt;");
            break;
        case '&':
            qat_write_text(page, "&amp;");
            break;
        case '"':
            qat_write_text(page, "&quot;");
            break;
        default:
            qat_write_u8(page, (uint8_t)*c);
        }
}

void html_element(qat_writer *page, const char *tag, const char *text)
{
    qat_write_text(page, "<%s>", tag);
    html_text(page, text);
    qat_write_text(page, "</%s>\n", tag);
}

void html_number(qat_writer *page, double value)
{
    if (isfinite(value))
        qat_write_text(page, "<td>%.6g</td>", value);
    else
        qat_write_text(page, "<td>-</td>");
}

void html_begin(qat_writer *page, const char *title)
{
    n_glyphs = figures = 0;
    qat_write_text(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, "
                         "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
                         "dark\">\n");
    html_element(page, "title", title);
    qat_write_text(page, "<style>%s</style>\n</head>\n<body>\n", style);
    html_element(page, "h1", title);
}

void html_end(qat_writer *page)
{
    qat_write_text(page, "</body>\n</html>\n");
}

/* ------------------------------------------------------------------ tables */

void html_table(qat_writer *page, html_columns columns, const char *const *heads, int n)
{
    static const char *const classes[] = {"", " class=\"left2\"", " class=\"texts\""};
    qat_write_text(page, "<div class=\"wide\"><table%s>\n<thead><tr>", classes[columns]);
    for (int i = 0; i < n; i++)
        html_element(page, "th", heads[i]);
    qat_write_text(page, "</tr></thead>\n<tbody>\n");
}

void html_table_end(qat_writer *page)
{
    qat_write_text(page, "</tbody></table></div>\n");
}

/** A chart, and its numbers below it. */
static void begin_chart(qat_writer *page)
{
    qat_write_text(page, "<div class=\"chart\">\n");
}

static void begin_numbers(qat_writer *page)
{
    qat_write_text(page, "<details><summary>the numbers</summary>\n");
}

static void end_numbers(qat_writer *page)
{
    html_table_end(page);
    qat_write_text(page, "</details>\n</div>\n");
}

/* ------------------------------------------------------------------ figures */

/** What stands in cairo's SVG, and what stands for it in a page: its colours follow the page's. */
static const char *const replaced[][2] = {
    {"rgb(100%,100%,100%)", "var(--page)"},   {"rgb(0%,0%,0%)", "var(--ink)"},
    {"rgb(87%,87%,87%)", "var(--line)"},      {"rgb(25%,25%,25%)", "var(--mild)"},
    {"rgb(100%, 100%, 100%)", "var(--page)"}, {"rgb(0%, 0%, 0%)", "var(--ink)"},
    {"rgb(87%, 87%, 87%)", "var(--line)"},    {"rgb(25%, 25%, 25%)", "var(--mild)"},
};
static const char *const named[] = {"\"surface", "\"clip", "#clip", "\"source"};

/** The letters of one figure, by the names that cairo gave them. */
struct letters {
    struct {
        const char *name;
        size_t n;
        int glyph;
    } at[MOST_LOCAL];
    int n;
};

/** The number of this shape; one that is new is written. -1: there are too many. */
static int glyph_of(qat_writer *page, const char *shape, size_t n)
{
    for (int i = 0; i < n_glyphs; i++)
        if (glyphs[i].n == n && !memcmp(page->bytes + glyphs[i].at, shape, n))
            return i;
    if (n_glyphs == MOST_GLYPHS)
        return -1;
    qat_write_text(page, "<symbol overflow=\"visible\" id=\"g%d\">", n_glyphs);
    glyphs[n_glyphs] = (struct glyph){page->count, n};
    qat_write_bytes(page, shape, n);
    qat_write_text(page, "</symbol>\n");
    return page->failed ? -1 : n_glyphs++;
}

/** A letter's definition at `at`: note it. The end of it, or NULL: there is none. */
static const char *define(qat_writer *page, struct letters *l, const char *at)
{
    static const char *const ends[] = {"</symbol>", "</g>"};
    bool const symbol = !strncmp(at, "<symbol ", 8);
    if ((!symbol && strncmp(at, "<g id=\"glyph", 12) != 0) || l->n == MOST_LOCAL)
        return NULL;
    const char *const name = strstr(at, "id=\"");
    if (!name)
        return NULL;
    const char *const shape = strchr(at, '>') + 1, *const end = strstr(shape, ends[!symbol]);
    int const glyph = end ? glyph_of(page, shape, (size_t)(end - shape)) : -1;
    if (glyph < 0)
        return NULL;
    l->at[l->n].name = name + 4;
    l->at[l->n].n = strcspn(name + 4, "\"");
    l->at[l->n++].glyph = glyph;
    return end + strlen(ends[!symbol]);
}

/** A letter that is used at `at`. */
static const char *use(qat_writer *page, const struct letters *l, const char *at)
{
    for (int i = 0; *at == '#' && i < l->n; i++)
        if (!strncmp(at + 1, l->at[i].name, l->at[i].n) && at[1 + l->at[i].n] == '"') {
            qat_write_text(page, "#g%d", l->at[i].glyph);
            return at + 1 + l->at[i].n;
        }
    return NULL;
}

/** The end of what is written at `at` in another way, or NULL. */
static const char *replace(qat_writer *page, struct letters *l, const char *at)
{
    const char *end = define(page, l, at);
    if (!end)
        end = use(page, l, at);
    for (size_t i = 0; !end && i < sizeof replaced / sizeof *replaced; i++)
        if (!strncmp(at, replaced[i][0], strlen(replaced[i][0]))) {
            qat_write_text(page, "%s", replaced[i][1]);
            end = at + strlen(replaced[i][0]);
        }
    for (size_t i = 0; !end && i < sizeof named / sizeof *named; i++)
        if (!strncmp(at, named[i], strlen(named[i]))) {
            qat_write_text(page, "%cf%d-%s", *at, figures, named[i] + 1);
            end = at + strlen(named[i]);
        }
    return end;
}

/** The tag of the SVG, with a name and as wide as the page makes it. Returns what is behind it. */
static const char *write_head(qat_writer *page, const char *svg, const char *title)
{
    const char *const tag = strstr(svg, "<svg"), *const box =
                                                     tag ? strstr(tag, "viewBox=\"") : NULL;
    if (!box)
        return "</svg>\n";
    qat_write_text(page,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                   "xmlns:xlink=\"http://www.w3.org/1999/xlink\" %.*s\" role=\"img\" "
                   "aria-label=\"",
                   (int)strcspn(box + 9, "\"") + 9, box);
    html_text(page, title);
    qat_write_text(page, "\">");
    return strchr(box, '>') + 1;
}

void html_figure(qat_writer *page, qat_writer *svg, const char *title, bool paper)
{
    struct letters letters = {.n = 0};
    qat_write_u8(svg, 0);
    if (svg->failed) {
        page->failed = true;
        qat_writer_free(svg);
        return;
    }
    qat_write_text(page, "<figure class=\"wide%s\">\n", paper ? " paper" : "");
    const char *at = write_head(page, (const char *)svg->bytes, title);
    for (figures++; *at;) {
        const char *end = replace(page, &letters, at);
        if (!end)
            qat_write_u8(page, (uint8_t)*at);
        at = end ? end : at + 1;
    }
    qat_write_text(page, "</figure>\n");
    qat_writer_free(svg);
    *svg = (qat_writer){0};
}

/** The status of drawing: without cairo the page has its tables. */
static qat_status place(qat_writer *page, qat_writer *svg, const char *title, qat_status st)
{
    if (!st)
        html_figure(page, svg, title, false);
    else
        html_element(page, "h4", title);
    qat_writer_free(svg);
    return st == QAT_ERR_UNSUPPORTED ? QAT_OK : st;
}

qat_status html_curves(qat_writer *page, const plot_curves *p, qat_error *err)
{
    qat_writer svg = {0};
    const char *const heads[] = {"curve", p->x_title, p->y_title};
    begin_chart(page);
    qat_status const st = place(page, &svg, p->title, plot_curves_svg(p, &svg, err));
    begin_numbers(page);
    html_table(page, HTML_NUMBERS, heads, 3);
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->curves[i].n; k++) {
            qat_write_text(page, "<tr>");
            html_element(page, "td", p->curves[i].name);
            html_number(page, p->curves[i].x[k]);
            html_number(page, p->curves[i].y[k]);
            qat_write_text(page, "</tr>\n");
        }
    end_numbers(page);
    return st;
}

qat_status html_histogram(qat_writer *page, const plot_histogram *p, qat_error *err)
{
    qat_writer svg = {0};
    const char *const heads[] = {p->x_title, "number of values"};
    double const width = (p->high - p->low) / p->n;
    begin_chart(page);
    qat_status const st = place(page, &svg, p->title, plot_histogram_svg(p, &svg, err));
    begin_numbers(page);
    html_table(page, HTML_NUMBERS, heads, 2);
    for (int i = 0; i < p->n; i++)
        if (p->counts[i])
            qat_write_text(page, "<tr><td>%g</td><td>%lld</td></tr>\n", p->low + (i + 0.5) * width,
                           (long long)p->counts[i]);
    end_numbers(page);
    return st;
}
