/** Private to the recipe reader: what recipe.c, value.c and text.c share. */
#ifndef QAT_RECIPE_RECIPE_H
#define QAT_RECIPE_RECIPE_H

#include "base/arena.h"
#include "base/words.h"
#include "qat/train.h"

enum { QAT_RECIPE_KEYS_MAX = 192 };

struct qat_recipe_private {
    qat_arena arena;
    int layers_capacity, quant_layers_capacity;
    int line_of[QAT_RECIPE_KEYS_MAX]; /* line in which a key was last set; 0: not by the file */
    bool given[QAT_RECIPE_KEYS_MAX];  /* by the file or by --set */
};

/**
 * Check that "name = text" is a line of a recipe from which the same text is read again: a recipe
 * is written into checkpoints. It is not with a comment, a line break, blanks at an end.
 */
qat_status qat_recipe_check_line(const char *name, const char *text, const char *where,
                                 qat_error *err);
/** Parse text into the member of the key. where: "file:12", for the message. */
qat_status qat_recipe_set_value(qat_recipe *recipe, const qat_key *key, const char *text,
                                const char *where, qat_error *err);
/** Write the member as text from which qat_recipe_set_value reads the same value; text[max]. */
void qat_recipe_get_text(const qat_recipe *recipe, const qat_key *key, char *text, size_t max);

/** Parse "yes", "no" and similar words. */
bool qat_recipe_parse_bool(bool *out, const char *text);

/** PATTERN of a section "quant.layer PATTERN"; NULL for another section. */
const char *qat_quant_layer_pattern(const char *section);
/** Set one key of such a section. where: "file:12", for the message. */
qat_status qat_quant_layer_set(qat_quant_layer *layer, const char *name, const char *value,
                               const char *where, qat_error *err);

/** Make an override from a section [quant.layer PATTERN]. Its `where` names file and line. */
qat_status qat_recipe_quant_layer(qat_quant_layer *layer, const qat_recipe *recipe,
                                  const qat_recipe_layer *from, qat_error *err);

/** The shortest decimal that reads back as the same double; text[max], 32 are enough. */
void qat_real_text(double value, char *text, size_t max);

/** Where a key was set: "file:12", "--set section.key=value", or "file" if it was not set. */
enum { QAT_RECIPE_WHERE_MAX = 256 };
void qat_recipe_where(const qat_recipe *recipe, const char *section, const char *name,
                      char where[QAT_RECIPE_WHERE_MAX]);
/** The same for an entry of a section [layer.NAME]; entry NULL: for the section. */
void qat_recipe_entry_where(const qat_recipe *recipe, const qat_recipe_layer *layer,
                            const qat_recipe_entry *entry, char where[QAT_RECIPE_WHERE_MAX]);

/** Set the keys that model.arch sets. Other values in the recipe are an error. */
qat_status qat_recipe_apply_arch(qat_recipe *recipe, qat_error *err);
/** Check that the keys fit together. The error names the line of a key that does not. */
qat_status qat_recipe_check(const qat_recipe *recipe, qat_error *err);

/**
 * The key that was probably meant by section.name, which does not exist: by the names that other
 * programs use, or the most similar key of the section, or of another section if that is very
 * similar. NULL: the section does not exist either, and nothing is similar.
 */
const qat_key *qat_nearest_key(const char *section, const char *name);
/** The section that was probably meant. Static text. */
const char *qat_nearest_section(const char *section);

/** Index of the key in the table, or -1. */
int qat_recipe_find_key(const char *section, const char *name);

#endif
