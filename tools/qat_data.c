/** qat-data: packs pictures into shards; lists and checks data. */
#include "tools/common/limits.h"
#include "tools/common/tool.h"
#include "tools/data/data.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 65500 };

static const char *only, *shard_size;
static int64_t resize, quality, jobs;
static bool skip_broken, overwrite;
static tool_list sets;

static const tool_option options[] = {
    {"--shard-size", TOOL_TEXT, &shard_size, "BYTES",
     "pack: the most bytes of a shard; K, M and G are allowed (default 256M)", 0, 0},
    {"--resize", TOOL_INT, &resize, "N",
     "pack: make pictures smaller whose short side is longer than N", 1, MOST_SIDE},
    {"--quality", TOOL_INT, &quality, "Q",
     "pack: store pictures that are resized or drawn as JPEG of this quality; without it\n"
     "they are stored as PNG. Other files are stored as they are",
     1, 100},
    {"--skip-broken", TOOL_FLAG, &skip_broken, NULL,
     "pack: leave out pictures that cannot be read, and name them", 0, 0},
    {"--overwrite", TOOL_FLAG, &overwrite, NULL, "pack: replace the shards in OUT", 0, 0},
    {"--only", TOOL_TEXT, &only, "train|test", "one split of the data alone", 0, 0},
    {"--set", TOOL_LIST, &sets, "data.KEY=VALUE",
     "a key of a recipe's section [data], such as data.split=0.9 (repeatable)", 0, 0},
    TOOL_MEMORY_OPTION("the most memory that a split may take, in MiB (default 4096)"),
    TOOL_PIXELS_OPTION,
    {"--jobs", TOOL_INT, &jobs, "N",
     "threads that decode (default: OMP_NUM_THREADS, or one per processor)", 1, TOOL_THREADS_MAX},
    {0}};

static const tool me = {
    "qat-data",
    "pack SOURCE OUT [--shard-size BYTES] [--resize N] [--quality Q]\n"
    "                [--skip-broken] [--overwrite] [--only train|test] [--set data.KEY=VALUE]...\n"
    "                [--jobs N] [--max-memory MIB] [--max-pixels N]\n"
    "       qat-data list|check SOURCE [--only train|test] [--set data.KEY=VALUE]...\n"
    "                [--jobs N] [--max-memory MIB] [--max-pixels N]",
    "Prepares data. SOURCE is KIND:PATH, as in a recipe, or a folder: of shards, or of pictures "
    "in\n"
    "train/ and val/, in each a folder for each class.\n"
    "  pack   write the pictures into a few large files in the folder OUT, for data.kind = tar\n"
    "  list   say what there is: samples, classes, bytes\n"
    "  check  decode all pictures, and name those that cannot be read",
    options,
    2,
    3};

/** A number of bytes, with K, M or G for multiples of 1024. */
static uint64_t bytes_of(const char *text)
{
    static const char letters[] = "KMG";
    char *end;
    if (!text)
        return 0;
    unsigned long long bytes = strtoull(text, &end, 10);
    const char *letter = *end ? strchr(letters, *end) : NULL;
    uint64_t const most = UINT64_C(1) << 40;
    for (const char *l = letters; letter && l <= letter && bytes <= most; l++)
        bytes *= 1024;
    if (end == text || *text == '-' || end[letter != NULL] || bytes < 1 << 16 || bytes > most)
        tool_usage(&me, "--shard-size %s: expected bytes in 64K..1024G, such as 256M", text);
    return bytes;
}

static qat_status pack(const data_source *source, const char *folder, qat_error *err)
{
    qat_pack_options const o = {.folder = folder,
                                .shard_bytes = bytes_of(shard_size),
                                .resize = (int)resize,
                                .quality = (int)quality,
                                .skip_broken = skip_broken,
                                .overwrite = overwrite};
    return data_pack(source, &o, err);
}

/** Which command is it? Refuse options that it does not have. */
static bool is_command(const tool_list *args, const char *name, int arguments)
{
    if (strcmp(args->items[0], name) != 0)
        return false;
    if (args->count != arguments + 1)
        tool_usage(&me, "%s takes %d argument%s", name, arguments, arguments > 1 ? "s" : "");
    if (strcmp(name, "pack") != 0 && (shard_size || resize || quality || skip_broken || overwrite))
        tool_usage(&me, "%s takes no option of pack", name);
    return true;
}

int main(int argc, char **argv)
{
    tool_list args;
    data_source source = {0};
    qat_error err;
    int broken = 0;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    bool const packs = is_command(&args, "pack", 2);
    bool const lists = !packs && is_command(&args, "list", 1);
    if (!packs && !lists && !is_command(&args, "check", 1))
        tool_usage(&me, "%s: expected pack, list or check", args.items[0]);
    if (only && strcmp(only, "train") != 0 && strcmp(only, "test") != 0)
        tool_usage(&me, "--only %s: expected train or test", only);
    for (int i = 0; i < sets.count; i++)
        if (strncmp(sets.items[i], "data.", 5) != 0)
            tool_usage(&me, "--set %s: only data.KEY can be set here", sets.items[i]);
    (void)bytes_of(shard_size);
    tool_threads(jobs);
    qat_status st = data_open(&source, args.items[1], only, &sets, &err);
    if (!st)
        st = packs   ? pack(&source, args.items[2], &err)
             : lists ? data_list(&source, &err)
                     : data_check(&source, &broken, &err);
    data_close(&source);
    return st ? tool_failed(&me, &err) : broken ? TOOL_FAILED : 0;
}
