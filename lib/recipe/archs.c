/** The table of networks that model.arch can name. */
#include "recipe/archs.h"

#include "base/number.h"

/** The 16 networks of Howard et al.: four multipliers at four resolutions. */
#define MOBILENET_V1(m, side)                                                                      \
    {                                                                                              \
        .name = "mobilenet_v1_" #m "_" #side, .family = QAT_FAMILY_MOBILENET_V1, .multiplier = m,  \
        .resolution = side                                                                         \
    }
#define MOBILENETS_V1(m)                                                                           \
    MOBILENET_V1(m, 224), MOBILENET_V1(m, 192), MOBILENET_V1(m, 160), MOBILENET_V1(m, 128)
#define RESNET(d)                                                                                  \
    {                                                                                              \
        .name = "resnet" #d, .family = QAT_FAMILY_RESNET, .depth = d                               \
    }
#define RESNET_IM(d)                                                                               \
    {                                                                                              \
        .name = "resnet" #d, .family = QAT_FAMILY_RESNET_IMAGENET, .depth = d, .width = 64         \
    }

static const qat_net_arch archs[] = {
    {.name = "layers"},
    {.name = "convnet", .family = QAT_FAMILY_CONVNET},
    {.name = "mlp", .family = QAT_FAMILY_MLP},
    {.name = "resnet", .family = QAT_FAMILY_RESNET},
    {.name = "mobilenet_v1", .family = QAT_FAMILY_MOBILENET_V1},
    {.name = "mobilenet_v2", .family = QAT_FAMILY_MOBILENET_V2},
    {.name = "inception_v3",
     .family = QAT_FAMILY_INCEPTION_V3,
     .smallest = 75,
     .has_auxiliary = true,
     .tensorflow_only = true},
    {.name = "inception_small", .family = QAT_FAMILY_INCEPTION_SMALL, .tensorflow_only = true},
    {.name = "mobilenet_ssd",
     .family = QAT_FAMILY_MOBILENET_SSD,
     .smallest = 64,
     .detects = true,
     .tensorflow_only = true},
    {.name = "imported", .family = QAT_FAMILY_IMPORTED, .tensorflow_only = true},
    RESNET(20),
    RESNET(32),
    RESNET(56),
    RESNET_IM(18),
    RESNET_IM(34),
    RESNET_IM(50),
    RESNET_IM(101),
    RESNET_IM(152),
    MOBILENETS_V1(1.0),
    MOBILENETS_V1(0.75),
    MOBILENETS_V1(0.5),
    MOBILENETS_V1(0.25),
};

const qat_net_arch *qat_net_arch_of(const qat_recipe *recipe)
{
    return &archs[recipe->model.arch];
}

bool qat_net_follows_pytorch(const qat_recipe *r)
{
    if (qat_net_arch_of(r)->tensorflow_only)
        return false;
    return r->model.convention == QAT_CONVENTION_PYTORCH ||
           (r->model.convention == QAT_CONVENTION_AUTO &&
            r->train.init_layout == QAT_INIT_LAYOUT_PYTORCH);
}

int qat_head_outputs(const char *head)
{
    int outputs = 0;
    for (const char *at = head; *at; at++) {
        if (!qat_is_digit(*at) || outputs > 65536)
            return 0;
        outputs = 10 * outputs + (*at - '0');
    }
    return outputs <= 65536 ? outputs : 0;
}

int qat_net_head(const qat_recipe *r)
{
    return qat_net_is_imported(r) ? qat_head_outputs(r->model.head) : 0;
}

const qat_net_arch *qat_net_archs(int *count)
{
    *count = (int)(sizeof archs / sizeof archs[0]);
    return archs;
}
