#include "datasets/readers/coco_json.h"

/** What jansson's structs take with malloc's own bytes, about. */
enum { OBJECT = 224, LIST = 144, PAIR = 80, STRING = 80, NUMBER = 32, PLACE = 16 };

/** What a character itself takes. */
static const uint8_t marks[UINT8_MAX + 1] = {
    ['{'] = OBJECT, ['['] = LIST, [':'] = PAIR, [','] = PLACE};

/** A value begins at the next character that is not white space. */
static bool value_follows(uint8_t c)
{
    return c == '[' || c == ':' || c == ',';
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/** What the value takes that begins with this character. */
static unsigned value_of(uint8_t first)
{
    if (first == '{' || first == '[')
        return 0; /* counted as a character */
    return first == '"' ? STRING : NUMBER;
}

void qat_json_memory_add(qat_json_memory *m, const uint8_t *text, size_t count)
{
    uint64_t bytes = m->bytes + count; /* of all strings together */
    bool waiting = m->value_follows;
    for (size_t i = 0; i < count; i++) {
        uint8_t const c = text[i];
        if (waiting && !is_space(c)) {
            bytes += value_of(c);
            waiting = false;
        }
        if (marks[c]) {
            bytes += marks[c];
            waiting = value_follows(c);
        }
    }
    m->bytes = bytes;
    m->value_follows = waiting;
}
