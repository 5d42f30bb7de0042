#include "board/events.h"

#include "base/checksums/crc32c.h"
#include "board/messages.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT32 = 1, STRING = 7, TENSORS = 2, SUCCESS = 1 }; /* of TensorFlow's enumerations */

static const char start_tag[] = "_hparams_/session_start_info";
static const char end_tag[] = "_hparams_/session_end_info";

/* ------------------------------------------------------------------ records */

static ProtobufCBinaryData data_of(const void *bytes, size_t count)
{
    return (ProtobufCBinaryData){.len = count, .data = (uint8_t *)bytes};
}

/** Room for a message; NULL: no memory. */
static uint8_t *packed(const ProtobufCMessage *message, size_t *count)
{
    *count = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(*count + 1);
    if (bytes)
        (void)protobuf_c_message_pack(message, bytes);
    return bytes;
}

void qat_board_record(qat_writer *to, Board__Event *event)
{
    size_t count, at = to->count;
    event->wall_time = (double)event->step;
    uint8_t *bytes = packed(&event->base, &count);
    to->failed |= !bytes;
    qat_write_u64(to, count);
    if (!to->failed)
        qat_write_u32(to, qat_masked_crc32c(to->bytes + at, 8));
    if (bytes)
        qat_write_bytes(to, bytes, count);
    if (bytes)
        qat_write_u32(to, qat_masked_crc32c(bytes, count));
    free(bytes);
}

static void write_value(qat_writer *to, int64_t step, const char *tag, Board__Value *value)
{
    Board__Summary summary = BOARD__SUMMARY__INIT;
    Board__Event event = BOARD__EVENT__INIT;
    value->tag = (char *)tag;
    summary.n_value = 1;
    summary.value = &value;
    event.step = step;
    event.what_case = BOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    qat_board_record(to, &event);
}

void qat_event_version(qat_writer *to)
{
    Board__Event event = BOARD__EVENT__INIT;
    event.what_case = BOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char *)"brain.Event:2";
    qat_board_record(to, &event);
}

/* ------------------------------------------------------------------ values */

void qat_event_scalar(qat_writer *to, int64_t step, const char *tag, double value)
{
    Board__Value v = BOARD__VALUE__INIT;
    v.value_case = BOARD__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = (float)value;
    write_value(to, step, tag, &v);
}

void qat_event_histogram(qat_writer *to, int64_t step, const char *tag,
                         const qat_board_histogram *h)
{
    Board__Value v = BOARD__VALUE__INIT;
    Board__Histogram histogram = BOARD__HISTOGRAM__INIT;
    double limits[QAT_BOARD_BINS], counts[QAT_BOARD_BINS];
    size_t n = h->max > h->min ? QAT_BOARD_BINS : 1;
    for (size_t i = 0; i < n; i++) {
        limits[i] = h->min + (h->max - h->min) * (double)(i + 1) / (double)n;
        counts[i] = h->counts[i];
    }
    limits[n - 1] = h->max;
    if (n == 1) /* all values are one: TensorBoard wants a right end beyond them */
        counts[0] = h->n;
    histogram.min = h->min;
    histogram.max = h->max;
    histogram.num = h->n;
    histogram.sum = h->sum;
    histogram.sum_squares = h->sum_squares;
    histogram.n_bucket_limit = histogram.n_bucket = n;
    histogram.bucket_limit = limits;
    histogram.bucket = counts;
    v.value_case = BOARD__VALUE__VALUE_HISTO;
    v.histo = &histogram;
    write_value(to, step, tag, &v);
}

void qat_event_png(qat_writer *to, int64_t step, const char *tag, int height, int width,
                   int channels, const void *png, size_t count)
{
    Board__Value v = BOARD__VALUE__INIT;
    Board__Image image = BOARD__IMAGE__INIT;
    image.height = height;
    image.width = width;
    image.colorspace = channels;
    image.encoded_image_string = data_of(png, count);
    v.value_case = BOARD__VALUE__VALUE_IMAGE;
    v.image = &image;
    write_value(to, step, tag, &v);
}

/** A value that a plugin of TensorBoard shows; what it shows is in the tensor or in its content. */
static void write_tensor(qat_writer *to, int64_t step, const char *tag, Board__Tensor *tensor,
                         Board__PluginData *plugin, int data_class)
{
    Board__Value v = BOARD__VALUE__INIT;
    Board__Metadata metadata = BOARD__METADATA__INIT;
    metadata.plugin_data = plugin;
    metadata.data_class = data_class;
    v.metadata = &metadata;
    v.value_case = BOARD__VALUE__VALUE_TENSOR;
    v.tensor = tensor;
    write_value(to, step, tag, &v);
}

void qat_event_text(qat_writer *to, int64_t step, const char *tag, const char *text)
{
    Board__Tensor tensor = BOARD__TENSOR__INIT;
    Board__Shape scalar = BOARD__SHAPE__INIT;
    Board__PluginData plugin = BOARD__PLUGIN_DATA__INIT;
    ProtobufCBinaryData string = data_of(text, strlen(text));
    tensor.dtype = STRING;
    tensor.tensor_shape = &scalar;
    tensor.n_string_val = 1;
    tensor.string_val = &string;
    plugin.plugin_name = (char *)"text";
    write_tensor(to, step, tag, &tensor, &plugin, TENSORS);
}

/* ------------------------------------------------------------------ hyperparameters */

/** The plugin finds all in the metadata. The value beside it is an empty tensor. */
static void write_hparams(qat_writer *to, int64_t step, const char *tag,
                          const Board__HParams *content)
{
    Board__Tensor tensor = BOARD__TENSOR__INIT;
    Board__Shape shape = BOARD__SHAPE__INIT;
    Board__Dim none = BOARD__DIM__INIT, *dims = &none;
    Board__PluginData plugin = BOARD__PLUGIN_DATA__INIT;
    size_t count;
    uint8_t *bytes = packed(&content->base, &count);
    shape.n_dim = 1;
    shape.dim = &dims;
    tensor.dtype = FLOAT32;
    tensor.tensor_shape = &shape;
    plugin.plugin_name = (char *)"hparams";
    plugin.content = data_of(bytes, count);
    to->failed |= !bytes;
    if (bytes)
        write_tensor(to, step, tag, &tensor, &plugin, TENSORS);
    free(bytes);
}

static void set_value(Board__SettingValue *value, const qat_board_setting *s)
{
    switch (s->kind) {
    case QAT_SETTING_TEXT:
        value->kind_case = BOARD__SETTING_VALUE__KIND_STRING_VALUE;
        value->string_value = s->value;
        break;
    case QAT_SETTING_NUMBER:
        value->kind_case = BOARD__SETTING_VALUE__KIND_NUMBER_VALUE;
        value->number_value = s->number;
        break;
    case QAT_SETTING_BOOL:
        value->kind_case = BOARD__SETTING_VALUE__KIND_BOOL_VALUE;
        value->bool_value = s->number != 0;
        break;
    }
}

void qat_event_settings(qat_writer *to, const qat_board_setting *settings, int count)
{
    size_t const n = (size_t)count;
    Board__HParams content = BOARD__HPARAMS__INIT;
    Board__Started started = BOARD__STARTED__INIT;
    Board__Setting *items = calloc(n + 1, sizeof *items),
                   **pointers = calloc(n + 1, sizeof *pointers);
    Board__SettingValue *values = calloc(n + 1, sizeof *values);
    to->failed |= !items || !pointers || !values;
    for (size_t i = 0; i < n && !to->failed; i++) {
        board__setting__init(pointers[i] = &items[i]);
        board__setting_value__init(items[i].value = &values[i]);
        items[i].key = settings[i].name;
        set_value(&values[i], &settings[i]);
    }
    started.n_hparams = n;
    started.hparams = pointers;
    content.data_case = BOARD__HPARAMS__DATA_SESSION_START_INFO;
    content.session_start_info = &started;
    if (!to->failed)
        write_hparams(to, 0, start_tag, &content);
    free(items);
    free(pointers);
    free(values);
}

void qat_event_end(qat_writer *to, int64_t step)
{
    Board__HParams content = BOARD__HPARAMS__INIT;
    Board__Ended ended = BOARD__ENDED__INIT;
    ended.status = SUCCESS;
    content.data_case = BOARD__HPARAMS__DATA_SESSION_END_INFO;
    content.session_end_info = &ended;
    write_hparams(to, step, end_tag, &content);
}

/* ------------------------------------------------------------------ back */

static void *take(void *no_memory, size_t count)
{
    void *memory = malloc(count);
    *(bool *)no_memory |= !memory;
    return memory;
}

static void give_back(void *no_memory, void *memory)
{
    (void)no_memory;
    free(memory);
}

bool qat_event_see(qat_event_look *look, const void *event, size_t count)
{
    *look = (qat_event_look){0};
    ProtobufCAllocator memory = {take, give_back, &look->no_memory};
    Board__Event *e = board__event__unpack(&memory, count, event);
    if (!e)
        return false;
    look->step = e->step;
    look->end = e->what_case == BOARD__EVENT__WHAT_SUMMARY && e->summary->n_value > 0 &&
                !strcmp(e->summary->value[0]->tag, end_tag);
    board__event__free_unpacked(e, &memory);
    return true;
}
