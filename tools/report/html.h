/** Pieces of an HTML page. Every text is escaped here: it may come from a stranger. */
#ifndef QAT_TOOLS_HTML_H
#define QAT_TOOLS_HTML_H

#include "tools/plot/plot.h"

/** A text as people should see it (tool_shown), with <, >, & and " as entities. */
void html_text(qat_writer *page, const char *text);
/** <tag>text</tag> */
void html_element(qat_writer *page, const char *tag, const char *text);
/** A cell with a number in six digits; a number that is not finite is "-". */
void html_number(qat_writer *page, double value);

/** Everything before and behind the sections; title also heads the page. */
void html_begin(qat_writer *page, const char *title);
void html_end(qat_writer *page);

/** What stands in the columns behind the first, which holds names. */
typedef enum html_columns { HTML_NUMBERS, HTML_TEXT_NUMBERS, HTML_TEXTS } html_columns;

/** A table that scrolls sideways where the page is narrow; its rows come between the two. */
void html_table(qat_writer *page, html_columns columns, const char *const *heads, int n);
void html_table_end(qat_writer *page);

/**
 * Curves as a figure, and their numbers as a table behind it. Points that are not finite must not
 * be among them. A build that cannot draw leaves the figure out.
 */
qat_status html_curves(qat_writer *page, const plot_curves *p, qat_error *err);
/** A histogram and its counts; codes: one column of the table names them. */
qat_status html_histogram(qat_writer *page, const plot_histogram *p, qat_error *err);
/**
 * An SVG drawn by tools/plot as a figure, with names of its own in the page; frees svg.
 * @param paper  it stays as on paper in a dark page
 */
void html_figure(qat_writer *page, qat_writer *svg, const char *title, bool paper);

#endif
