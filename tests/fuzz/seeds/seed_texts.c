/** Seeds of the targets that read texts. */
#include "fuzz/seeds/seed.h"

#include <stdio.h>
#include <string.h>

static void write_each(const char *folder, int mode, int options, int n_parts,
                       const char *const (*texts)[3], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct seed_part parts[3];
        char name[32];
        for (int k = 0; k < n_parts; k++)
            parts[k] = seed_text(texts[i][k]);
        snprintf(name, sizeof name, "seed-%d-%d-%zu", mode, options, i);
        seed_parts(folder, name, mode, options, n_parts, parts);
    }
}

#define WRITE(mode, options, n_parts, texts)                                                       \
    write_each(folder, mode, options, n_parts, texts, sizeof(texts) / sizeof *(texts))

/** data.attributes, data.value, the table. */
static void csv(const char *folder)
{
    static const char *const tables[][3] = {
        {"gender=female", "age",
         "file,split,age,gender\na.png,train,24,female\nb.png,train,,male\na.png,val,NA,NA\n"},
        {"gender=female, smile=yes", "",
         "\xef\xbb\xbf"
         "file,split,gender,smile\r\n\"a.png\",test,female,yes\r\n\r\na.png,train,x,no\r\n"},
        {"g=\"f, g", "v", "v,g,split,file\n-1.5e3,\"\"\"f\",train,a.png\n7,f,,a.png\n"},
        {"g=", "", "file,split,g\na.png,other,f\n"},
        {"g=f", "v", "file,split,g,v\na.png,train,f,seven\n"}};
    static const char *const undivided[][3] = {
        {"g=f", "v", "file,g,v\na.png,f,1\nb.png,g,2\na.png,f,3\nc.png,,4\n"}};
    WRITE(0, 0, 3, tables);
    WRITE(0, 1, 3, tables);
    WRITE(0, 2 + 8, 3, undivided);
    WRITE(0, 1 + 2 + 4, 3, undivided);
}

/** train.txt and test.txt; a list; names of files. */
static void list(const char *folder)
{
    static const char *const lists[][3] = {
        {"a.png 0\na.png 1\nx/b.png\t2 \r\n\n/none/c.png 3\n", "a.png 1\n"},
        {"a picture.png 65535\na.png 9", ""},
        {"a.png -1\n", "a.png\n"},
        {"a.png 65536\n", "  \n"}};
    static const char *const names[][3] = {
        {"train/cat/a.png\ntrain/cat/b.JPG\ntrain/dog/c.gif\nval/cat/d.png\nval/dog/e.ppm\n", ""},
        {"cat/a.png\ncat/b.png\ndog/c.png\ndog/d.png\ncat/notes.txt\ncat/.hidden\n", ""},
        {"train/cat/a.webp\ntrain/cat/sub/b.png\ntest/cow/c.png\n", ""},
        {"train/cat/a.png\ntest/cat/b.png\nreadme.md\n", ""}};
    WRITE(0, 0, 2, lists);
    WRITE(0, 1, 2, lists);
    WRITE(1, 2, 2, lists);
    WRITE(1, 1 + 8, 2, lists);
    WRITE(2, 0, 2, names);
    WRITE(2, 1, 2, names);
    WRITE(2, 2 + 4, 2, names);
}

static void coco(const char *folder)
{
    static const char *const files[][3] = {
        {"{\"images\": [{\"id\": 7, \"file_name\": \"a.png\", \"height\": 4, \"width\": 5},\n"
         " {\"id\": -2, \"file_name\": \"x/b.jpg\", \"height\": 480, \"width\": 640}],\n"
         "\"annotations\": [\n"
         "{\"id\": 1, \"image_id\": 7, \"category_id\": 18, \"bbox\": [0.5, 1, 2, 3.25]},\n"
         "{\"image_id\": 7, \"category_id\": 3, \"bbox\": [0, 0, 5, 4], \"area\": 11.5, "
         "\"iscrowd\": 1},\n"
         "{\"id\": 3, \"image_id\": -2, \"category_id\": 3, \"bbox\": [-1, -1, 2, 0], "
         "\"iscrowd\": false}],\n"
         "\"categories\": [{\"id\": 18, \"name\": \"dog\"}, {\"id\": 3, \"name\": \"\\u00e9t\\u00e9"
         "\"}]}\n"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"a.png\", \"height\": 9, \"width\": 5}], "
         "\"annotations\": [], \"categories\": [{\"id\": 1, \"name\": \"a\"}]}"},
        {"{\"images\": [], \"annotations\": [], \"categories\": []}"},
        {"{\"info\": {\"year\": 2017}, \"images\": [{\"id\": 1}], \"annotations\": {}}"}};
    WRITE(0, 0, 1, files);
    WRITE(0, 1 + 4, 1, files);
    WRITE(0, 2 + 8, 1, files);
}

/** Lines of --set, the text. */
static void recipe(const char *folder)
{
    static const char *const recipes[][3] = {
        {"", "[data]\nkind = digits\ntrain_count = 8\ntest_count = 4\nheight = 12\n"
             "[model]\narch = convnet\nfilters = 4, 8\nstrides = 2, 1\n"
             "[train]\nepochs = 1\nbatch = 4\nlr = 0.05\n[quant]\nquant_delay = 50%\n"},
        {"train.lr=0.2\nmodel.dropout=0.5\nquant.layer *.weight_bits=4\nlayer.a.stride=2\n",
         "[data]\nkind = folder\npath = ${QAT_DATA}/x\nheight = 9\nchannels = 1\nclasses = 3\n"
         "[model]\narch = layers\n"
         "[layer.a]\nop = conv2d\nfilters = 4\nkernel = 3\n[layer.b]\nop = batch_norm\n"
         "[layer.c]\nop = relu\n[layer.d]\nop = depthwise_conv2d\nkernel = 3\npadding = 1,1,1,1\n"
         "[layer.e]\nop = add\ninput = c, d\n[layer.f]\nop = global_average_pool\n"
         "[layer.g]\nop = fully_connected\nunits = 3\n[quant.layer a]\nsymmetric = yes\n"},
        {"", "; a comment\n[data]\nkind = scenes\nheight = 64\ntrain_count = 4\n"
             "[model]\narch = mobilenet_ssd\nfilters = 4\n[detect]\nmax_scale = 0.9\n"
             "[train]\nschedule = piecewise\nmilestones = 50%, 2 epochs, 7\nsteps = 9\n"},
        {"", "[data]\nkind = table\npath = t.csv\nattributes = g=f, s=y\nvalue = age\nheight = 16\n"
             "[model]\narch = mobilenet_v1\n[train]\noptimizer = adam\naverage_decay = 0.9\n"
             "[quant]\nweight_ranges = lsq\nactivation_ranges = tqt\nweight_bits = 4\n"},
        {"",
         "[model]\narch = resnet20\n[data]\nkind = cifar10\npath = c\nheight = 8\nclasses = 10\n"
         "mean = 1, 2, 3\nstd = 4,5,6\n[quant]\nlayout = int8\nbn_fold = one_pass\n"},
        {"data.kind=shapes\nx.y=1\n", "[data]\nkinds = digits\n"},
        {"train.threads=", "[train\nlr = fast\n"}};
    WRITE(0, 0, 2, recipes);
    WRITE(0, 1, 2, recipes);
}

/** One label per line. */
static void labels(const char *folder)
{
    static const char *const files[][3] = {{"cat\ndog\n"},
                                           {"cat\r\n\r\n\xc3\xa9t\xc3\xa9\rlast"},
                                           {"\n\n"},
                                           {"\x1b[2J\xff\n???"},
                                           {""}};
    WRITE(0, 0, 1, files);
    WRITE(0, 1, 1, files);
}

int seed_texts(const char *target, const char *folder)
{
    static const struct {
        const char *target;
        void (*write)(const char *folder);
    } all[] = {{"fuzz_csv", csv},
               {"fuzz_list", list},
               {"fuzz_coco", coco},
               {"fuzz_recipe", recipe},
               {"fuzz_labels", labels}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(target, all[i].target) == 0) {
            all[i].write(folder);
            return 1;
        }
    return 0;
}
