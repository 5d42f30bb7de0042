/** Private to this folder: the table of keys, and what reads, checks and writes them. */
#ifndef QAT_RECIPE_READER_H
#define QAT_RECIPE_READER_H

#include "base/arena.h"
#include "base/words.h"
#include "recipe/recipe.h"

typedef enum qat_key_type {
    QAT_KEY_BOOL,
    QAT_KEY_INT,
    QAT_KEY_BYTES, /* an integer; K and M are 1024 and 1024 x 1024 */
    QAT_KEY_MIB,   /* an integer of 1024 x 1024 bytes; M says so, G is 1024 of them */
    QAT_KEY_COUNT, /* an integer; K, M and G are 1000, a million and a billion */
    QAT_KEY_REAL,
    QAT_KEY_CHOICE,
    QAT_KEY_TEXT,
    QAT_KEY_INTS,
    QAT_KEY_REALS,
    QAT_KEY_STEPS,
    QAT_KEY_STEPS_LIST
} qat_key_type;

/**
 * One key of the table of keys, which serves validation, defaults, `qat-train --keys` and canonical
 * text.
 */
typedef struct qat_key {
    const char *section, *name;
    qat_key_type type;
    const char *initial; /* default, as text */
    double min, max;     /* of numbers, and of each number in a list */
    const char *choices; /* QAT_KEY_CHOICE: "a|b|c"; the value is the index */
    bool free_on_resume; /* may differ from the checkpoint's recipe, because it does not change the
                            result */
    size_t offset;       /* offset of the member of qat_recipe */
    const char *meaning;
} qat_key;

/** The table of keys, and the number of its entries. */
const qat_key *qat_recipe_keys(int *count);
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

/** Parse a moment of a run: "2000", "30%", "4 epochs". */
bool qat_recipe_parse_moment(qat_steps *out, const char *text);

/** A stage of a schedule of bits. */
typedef struct qat_recipe_stage {
    int bits;
    qat_steps until;
} qat_recipe_stage;
/**
 * Parse "8 until 30%, 4 until 60%", with bits that fall, of quant.weight_bits_schedule or
 * quant.activation_bits_schedule.
 */
qat_status qat_recipe_stages(const qat_recipe *recipe, const char *key, const char *text,
                             qat_recipe_stage stages[QAT_BITS_STAGES], int *n, qat_error *err);
/** The same in steps. A stage without a step is left out. */
qat_status qat_recipe_bits_stages(const qat_recipe *recipe, const char *key, const char *text,
                                  int64_t per_epoch, int64_t total,
                                  qat_bits_stage stages[QAT_BITS_STAGES], int *n, qat_error *err);

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
