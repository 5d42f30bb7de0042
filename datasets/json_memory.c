#include "datasets/coco_json.h"

#include <string.h>

/** What jansson's structs take with malloc's own bytes, about. */
enum { OBJECT = 224, LIST = 144, PAIR = 80, STRING = 80, NUMBER = 32, PLACE = 16 };

/** What the value takes that begins at the next character which is not white space. */
static unsigned value_at(const uint8_t *at, const uint8_t *end)
{
    while (at < end && strchr(" \t\r\n", *at))
        at++;
    if (at == end || *at == '{' || *at == '[')
        return 0; /* counted at its own character */
    return *at == '"' ? STRING : NUMBER;
}

uint64_t qat_json_memory(const uint8_t *text, size_t count)
{
    const uint8_t *end = text + count;
    uint64_t bytes = count; /* of all strings together */
    for (const uint8_t *at = text; at < end; at++)
        if (*at == '{')
            bytes += OBJECT;
        else if (*at == '[')
            bytes += LIST + value_at(at + 1, end);
        else if (*at == ':')
            bytes += PAIR + value_at(at + 1, end);
        else if (*at == ',')
            bytes += PLACE + value_at(at + 1, end);
    return bytes;
}
