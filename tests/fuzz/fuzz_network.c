#include "fuzz/fuzz_network.h"

#include "fuzz/fuzz.h"
#include "recipe/recipe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static qat_registry *registry;
static qat_plugins *no_plugins;

static void free_registry(void)
{
    qat_registry_free(registry);
    qat_plugins_free(no_plugins);
}

const qat_registry *fuzz_registry(void)
{
    if (!registry) {
        fuzz_require(qat_open_registry(&registry, &no_plugins, NULL, NULL) == QAT_OK, "a registry");
        fuzz_require(atexit(free_registry) == 0, "the registry goes at exit");
    }
    return registry;
}

const qat_plugins *fuzz_no_plugins(void)
{
    fuzz_registry();
    return no_plugins;
}

static int items_of(const char *list)
{
    int n = *list != 0;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static int or_else(int64_t value, int otherwise)
{
    return value > 0 ? (int)value : otherwise;
}

qat_status fuzz_input(qat_input_info *input, const qat_recipe *r, qat_error *err)
{
    bool const targets = qat_dataset_kind_has_targets(r->data.kind);
    int const height = or_else(r->data.height, 12);
    qat_dataset_info const data = {.count = INT_MAX,
                                   .height = height,
                                   .width = or_else(r->data.width, height),
                                   .channels = or_else(r->data.channels, 3),
                                   .type = QAT_SAMPLE_U8,
                                   .classes = targets             ? items_of(r->data.attributes)
                                              : r->data.one_class ? 1
                                                                  : or_else(r->data.classes, 4),
                                   .max = 255,
                                   .has_objects = qat_dataset_kind_has_objects(r->data.kind),
                                   .has_targets = targets,
                                   .has_value = targets && *r->data.value != 0,
                                   .name = "data"};
    return qat_input_info_of(input, NULL, r, &data, err);
}

bool fuzz_network_is_small(const qat_graph *graph)
{
    enum { MOST_VALUES = 1 << 15, MOST_MACS = 1 << 20 };
    qat_network_size size;
    qat_error err;
    int64_t values = 0;
    for (int i = 0; i < qat_graph_nodes(graph) && values <= MOST_VALUES; i++)
        values += (int64_t)qat_shape_count(&qat_graph_node(graph, i)->shape);
    return values <= MOST_VALUES && qat_network_size_of(graph, &size, &err) == QAT_OK &&
           size.macs <= MOST_MACS;
}
