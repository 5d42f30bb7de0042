/**
 * Folders of WAV files, in the layout of kind `folder`, or in that of Google's Speech Commands:
 *
 *     path/<word>/<file>.wav      a folder for each word
 *     path/testing_list.txt       "<word>/<file>.wav", one a line: the test split
 *     path/validation_list.txt    the same: the validation split; never trained on
 *     path/_background_noise_     longer sounds: noise for augmentation, pieces of it are silence
 *
 * A sample is the log-mel spectrogram of the first options.seconds of a sound. Sounds are read when
 * they are requested; background noise is kept in memory.
 */
#include "datasets/readers/classes.h"
#include "datasets/sounds/wave.h"

#include "qat/sound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SPLIT_LIST_BYTES = 1 << 28, MAX_SECONDS = 60, VOLUME_ONE = 1 << 16 };

static const char noise_folder[] = "_background_noise_", test_list[] = "testing_list.txt",
                  validation_list[] = "validation_list.txt";

typedef struct wav {
    qat_files files; /* first: own of a data set of files */
    int32_t *piece;  /* by sample: -1, or the number of a piece of noise, which is silence */
    uint64_t seed;   /* of these pieces */
    qat_wave *noise; /* n_noise sounds; samples in the arena */
    const char **noise_path;
    int n_noise;
} wav;

/** What is known while a set is opened. */
typedef struct opening {
    qat_dataset *dataset;
    const qat_dataset_options *options;
    qat_split split;
    const char *folder;          /* of the classes' folders */
    qat_names tested, validated; /* lines of the lists; empty: there are no lists */
    bool listed;
    int left_out;             /* sounds of the validation list */
    qat_names words, folders; /* the classes of data.words, sorted; folders of classes */
    int *labels;              /* of these words */
    int unknown;              /* its class; -1: none */
    qat_class_files of;
    qat_error *err;
} opening;

/* ------------------------------------------------------------------ lists of files */

/** Is `root` in the layout of Speech Commands? */
static bool has_list(const char *root, const char *name)
{
    char path[4096];
    qat_file_path((qat_file_name){.folder = root, .name = "train"}, path, sizeof path);
    if (qat_files_is_folder(path))
        return false;
    qat_file_path((qat_file_name){.folder = root, .name = name}, path, sizeof path);
    return access(path, F_OK) == 0;
}

static bool wav_validates(const qat_dataset_options *o)
{
    return has_list(o->path, test_list) && has_list(o->path, validation_list);
}

/** Cut a text into lines; they are as many as its ends of lines, and one. */
static qat_status cut_lines(opening *o, const char *text, qat_names *lines)
{
    qat_arena *arena = &o->dataset->arena;
    lines->capacity = qat_files_count_lines(text);
    lines->at = qat_arena_array(arena, (size_t)lines->capacity, sizeof *lines->at);
    char *copy = qat_arena_string(arena, text);
    if (!lines->at || !copy)
        return qat_out_of_memory(o->err, "lists of sounds");
    for (char *at = copy; *at;) {
        size_t const length = strcspn(at, "\r\n");
        bool const last = at[length] == '\0';
        at[length] = '\0';
        if (length)
            lines->at[lines->count++] = at;
        at += length + !last;
    }
    qsort(lines->at, (size_t)lines->count, sizeof *lines->at, qat_names_order);
    return QAT_OK;
}

static qat_status read_list(opening *o, const char *name, qat_names *lines)
{
    uint8_t *bytes;
    size_t count;
    const char *root = o->options->path;
    const char *path = qat_dataset_join(&o->dataset->arena, root, name);
    if (!path)
        return qat_out_of_memory(o->err, name);
    if (!has_list(root, name))
        return QAT_OK;
    o->listed = true;
    qat_status st =
        qat_dataset_read(o->dataset, path, MAX_SPLIT_LIST_BYTES, &bytes, &count, o->err);
    if (!st)
        st = qat_files_check_text(path, bytes, count, o->err);
    if (!st)
        st = qat_files_hold_lines(o->dataset, path, (const char *)bytes, root, o->err);
    if (!st)
        st = cut_lines(o, (const char *)bytes, lines);
    free(bytes);
    return st;
}

static bool skips(void *context, const char *class_name, const char *file)
{
    opening *o = context;
    char name[2 * 256 + 2];
    qat_file_path((qat_file_name){.folder = class_name, .name = file}, name, sizeof name);
    bool const tested = qat_classes_find(&o->tested, name) >= 0;
    bool const validated = qat_classes_find(&o->validated, name) >= 0;
    if (o->split == QAT_SPLIT_TRAIN && validated && !(o->options->validation > 0))
        o->left_out++;
    return o->split == QAT_SPLIT_TRAIN  ? tested || validated
           : o->split == QAT_SPLIT_TEST ? !tested
                                        : !validated;
}

/* ------------------------------------------------------------------ where things are */

static qat_status find_folder(opening *o)
{
    qat_status st = read_list(o, test_list, &o->tested);
    if (!st && o->listed)
        st = read_list(o, validation_list, &o->validated);
    if (st)
        return st;
    if (o->listed && o->options->split > 0)
        return qat_fail(o->err, QAT_ERR_ARGUMENT,
                        "%s/%s is there already: data.split would make another test split",
                        o->options->path, test_list);
    if (o->listed) {
        o->folder = o->options->path;
        return QAT_OK;
    }
    return qat_folder_of_split(o->dataset, o->options->path, "the folders of the classes are in",
                               o->options->split > 0, o->split, &o->folder, o->err);
}

/** The folders whose names are the classes: those of train, if it is there. */
static qat_status list_folders(opening *o)
{
    const char *train = qat_dataset_join(&o->dataset->arena, o->options->path, "train");
    if (!train)
        return qat_out_of_memory(o->err, o->options->path);
    return qat_classes_list(o->dataset, qat_files_is_folder(train) ? train : o->folder, true,
                            &o->folders, NULL, o->err);
}

/* ------------------------------------------------------------------ background noise */

/** The samples of a file of noise are moved to the arena. */
static qat_status take_noise(opening *o, wav *w, const char *path)
{
    qat_dataset *d = o->dataset;
    qat_wave read = {0}, *to = &w->noise[w->n_noise];
    uint64_t const left = (d->memory - d->held) / (2 * sizeof *read.samples);
    size_t const most = left < QAT_WAVE_MOST_SAMPLES ? (size_t)left + 1 : 0;
    qat_status st = qat_wave_read(&read, path, most, o->err);
    if (!st && read.count == 0)
        st = qat_fail(o->err, QAT_ERR_FORMAT, "%s: no samples", path);
    if (!st)
        st = qat_dataset_hold(d, path, 2 * read.count * sizeof *read.samples, o->err);
    if (!st) {
        qat_dataset_release(d, read.count * sizeof *read.samples); /* freed below */
        to->samples = qat_arena_array(&d->arena, read.count, sizeof *read.samples);
        to->count = read.count;
        st = to->samples ? QAT_OK : qat_out_of_memory(o->err, path);
    }
    if (!st) {
        memcpy(to->samples, read.samples, read.count * sizeof *read.samples);
        w->noise_path[w->n_noise++] = path;
    }
    free(read.samples);
    return st;
}

static qat_status read_noise(opening *o, wav *w)
{
    qat_arena *arena = &o->dataset->arena;
    qat_names names;
    const char *root = o->options->path;
    const char *beside = qat_dataset_join(arena, root, noise_folder);
    const char *train = qat_dataset_join(arena, root, "train");
    const char *inside = train ? qat_dataset_join(arena, train, noise_folder) : NULL;
    if (!beside || !inside)
        return qat_out_of_memory(o->err, noise_folder);
    const char *folder = qat_files_is_folder(beside) ? beside : inside;
    if (!qat_files_is_folder(folder))
        return QAT_OK;
    qat_status st = qat_folder_list(arena, folder, qat_wave_has_ending, &names, NULL, o->err);
    if (st)
        return st;
    w->noise = qat_arena_array(arena, (size_t)names.count + 1, sizeof *w->noise);
    w->noise_path = qat_arena_array(arena, (size_t)names.count + 1, sizeof *w->noise_path);
    if (!w->noise || !w->noise_path)
        return qat_out_of_memory(o->err, folder);
    for (int i = 0; !st && i < names.count; i++) {
        const char *path = qat_dataset_join(arena, folder, names.at[i]);
        st = path ? take_noise(o, w, path) : qat_out_of_memory(o->err, folder);
    }
    return st;
}

static bool wav_background(const qat_dataset *d, qat_rng *rng, int16_t *samples)
{
    const wav *w = d->own;
    if (!w->n_noise || !rng)
        return w->n_noise > 0;
    const qat_wave *from = &w->noise[qat_rng_below(rng, (uint32_t)w->n_noise)];
    size_t at = qat_rng_below(rng, (uint32_t)from->count);
    for (size_t i = 0; i < qat_wave_samples(d->info.height); i++) {
        samples[i] = from->samples[at];
        at = at + 1 < from->count ? at + 1 : 0;
    }
    return true;
}

/* ------------------------------------------------------------------ classes */

/** The word that begins at *text, without blanks around it, behind which *text then stands. */
static char *next_word(char **text)
{
    char *word = *text + strspn(*text, " \t,");
    size_t n = strcspn(word, ",");
    *text = word + n + (word[n] != 0);
    while (n && (word[n - 1] == ' ' || word[n - 1] == '\t'))
        n--;
    word[n] = 0;
    return n ? word : NULL;
}

/** Set the classes of data.words, silence and what is neither. */
static qat_status take_words(opening *o, const wav *w)
{
    qat_dataset *d = o->dataset;
    char *text = qat_arena_string(&d->arena, o->options->words);
    size_t const most = text ? strlen(text) / 2 + 4 : 0;
    const char **labels = qat_arena_array(&d->arena, most, sizeof *labels);
    o->words.at = qat_arena_array(&d->arena, most, sizeof *o->words.at);
    o->labels = qat_arena_array(&d->arena, most, sizeof *o->labels);
    if (!text || !labels || !o->words.at || !o->labels)
        return qat_out_of_memory(o->err, "data.words");
    for (char *at; (at = next_word(&text));) {
        if (qat_classes_find(&o->folders, at) < 0)
            return qat_fail(o->err, QAT_ERR_ARGUMENT, "data.words: there is no folder %.100s in %s",
                            at, o->options->path);
        labels[o->words.count] = at;
        o->words.at[o->words.count++] = at;
    }
    int const n = o->words.count;
    qsort(o->words.at, (size_t)n, sizeof *o->words.at, qat_names_order);
    for (int i = 0; i + 1 < n; i++)
        if (!strcmp(o->words.at[i], o->words.at[i + 1]))
            return qat_fail(o->err, QAT_ERR_ARGUMENT, "data.words: %.100s stands there twice",
                            o->words.at[i]);
    for (int i = 0; i < n; i++)
        o->labels[qat_classes_find(&o->words, labels[i])] = i;
    d->info.classes = n;
    if (w->n_noise)
        labels[d->info.classes++] = "_silence_";
    o->unknown = o->folders.count > n ? d->info.classes : -1;
    if (o->unknown >= 0)
        labels[d->info.classes++] = "_unknown_";
    d->info.labels = labels;
    return QAT_OK;
}

static qat_status take_classes(opening *o, const wav *w)
{
    if (o->options->words && *o->options->words)
        return take_words(o, w);
    o->unknown = -1;
    o->dataset->info.classes = o->folders.count;
    o->dataset->info.labels = o->folders.at;
    return QAT_OK;
}

/** The class of a folder's sounds; -1: there is no such folder in train. */
static int label_of(const opening *o, const char *folder)
{
    if (!o->words.count)
        return qat_classes_find(&o->folders, folder);
    int const word = qat_classes_find(&o->words, folder);
    return word < 0 ? o->unknown : o->labels[word];
}

static qat_status add_sounds(opening *o)
{
    qat_names here;
    qat_ignored *ignored = o->listed ? NULL : &o->dataset->ignored; /* beside lists stand others */
    qat_status st = qat_classes_list(o->dataset, o->folder, true, &here, ignored, o->err);
    for (int i = 0; !st && i < here.count; i++) {
        int const label = label_of(o, here.at[i]);
        if (label < 0)
            return qat_fail(o->err, QAT_ERR_FORMAT,
                            "%s: the class folder %s does not exist in train", o->folder,
                            here.at[i]);
        st = qat_classes_add(o->dataset, &o->of, o->folder, here.at[i], label,
                             o->listed ? skips : NULL, o, o->err);
    }
    o->dataset->ignored.listed = o->left_out;
    return st;
}

/* ------------------------------------------------------------------ how many of each */

/** Keep every sound but for some of those that are no word: as many as a word has, evenly spread.
 *  @param each  that number; 0 without data.words */
static qat_status thin_unknown(opening *o, int *each)
{
    qat_dataset *d = o->dataset;
    int const count = d->info.count;
    int unknown = 0, n = 0, seen = 0;
    *each = 0;
    if (!o->words.count)
        return QAT_OK;
    for (int i = 0; i < count; i++)
        unknown += d->labels[i] == o->unknown;
    *each = (count - unknown + o->words.count - 1) / o->words.count;
    int *kept = malloc(((size_t)count + 1) * sizeof *kept);
    if (!kept)
        return qat_out_of_memory(o->err, "data.words");
    int const most = unknown < *each ? unknown : *each;
    for (int i = 0; i < count; i++) {
        bool const is_unknown = d->labels[i] == o->unknown;
        int64_t const before = (int64_t)seen * most;
        seen += is_unknown;
        if (!is_unknown || before / unknown != (int64_t)seen * most / unknown)
            kept[n++] = i;
    }
    qat_keep_items(o->of.files->paths, sizeof *o->of.files->paths, kept, n);
    qat_keep_items(d->labels, sizeof *d->labels, kept, n);
    d->info.count = n;
    free(kept);
    return QAT_OK;
}

/** Append so many pieces of silence to the sounds, then keep at most `limit` samples. */
static qat_status add_silence(opening *o, wav *w, int silence, int limit)
{
    qat_dataset *d = o->dataset;
    int const sounds = d->info.count, all = sounds + silence;
    int const keep = qat_dataset_limit(all, limit);
    size_t const room = (size_t)all + 1;
    const char **paths = qat_arena_array(&d->arena, room, sizeof *paths);
    int32_t *labels = qat_arena_array(&d->arena, room, sizeof *labels);
    w->piece = qat_arena_array(&d->arena, room, sizeof *w->piece);
    if (!paths || !labels || !w->piece)
        return qat_out_of_memory(o->err, d->info.name);
    for (int i = 0; i < keep; i++) {
        int const from = (int)((int64_t)i * all / keep);
        bool const is_sound = from < sounds;
        w->piece[i] = is_sound ? -1 : from - sounds;
        paths[i] = is_sound ? w->files.paths[from] : w->noise_path[0];
        labels[i] = is_sound ? d->labels[from] : o->words.count;
    }
    w->files.paths = paths;
    d->labels = labels;
    d->info.count = keep;
    return QAT_OK;
}

static qat_status open_samples(opening *o, wav *w)
{
    int each = 0;
    qat_status st = find_folder(o);
    if (!st)
        st = list_folders(o);
    if (!st)
        st = read_noise(o, w);
    if (!st)
        st = take_classes(o, w);
    if (!st)
        st = add_sounds(o);
    if (!st)
        st = thin_unknown(o, &each);
    return st ? st
              : add_silence(o, w, w->n_noise ? each : 0, qat_split_count(o->options, o->split));
}

static qat_status wav_open(qat_dataset *d, const qat_dataset_options *options, qat_split split,
                           qat_error *err)
{
    double const seconds = options->seconds > 0 ? options->seconds : 1;
    wav *w = d->own = qat_arena_take(&d->arena, sizeof *w);
    if (!w)
        return qat_out_of_memory(err, options->path);
    if (!(seconds <= MAX_SECONDS))
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: seconds %g, more than %d", seconds,
                        MAX_SECONDS);
    int const frames = (int)qi_sound_frames((size_t)floor(seconds * QI_SOUND_RATE + 0.5));
    if (!frames)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: %g seconds are shorter than a frame, %g",
                        seconds, (double)QI_SOUND_FRAME / QI_SOUND_RATE);
    *w = (wav){.files.root = qat_arena_string(&d->arena, options->path),
               .seed = qat_hash(options->seed, qat_hash_name(qat_split_name(split)))};
    opening o = {.dataset = d,
                 .options = options,
                 .split = split,
                 .of = {qat_wave_has_ending, "sounds", ".wav", &w->files, 0},
                 .err = err};
    qat_status const st =
        w->files.root ? open_samples(&o, w) : qat_out_of_memory(err, options->path);
    int64_t const hwc[3] = {frames, QI_SOUND_BANDS, 1};
    return st ? st
              : qat_dataset_set_shape(d, options->path, d->info.count, hwc, QAT_SAMPLE_SOUND, err);
}

/* ------------------------------------------------------------------ samples */

/** A piece of noise of some loudness. */
static void silence_of(const qat_dataset *d, int piece, int16_t *samples)
{
    const wav *w = d->own;
    qat_rng rng = qat_rng_at(w->seed, qat_hash_name("silence"), (uint64_t)piece);
    int64_t const volume = qat_rng_below(&rng, VOLUME_ONE + 1);
    (void)wav_background(d, &rng, samples);
    for (size_t i = 0; i < qat_wave_samples(d->info.height); i++)
        samples[i] = (int16_t)(samples[i] * volume / VOLUME_ONE);
}

static qat_status wav_sound(const qat_dataset *d, int index, int16_t *samples, qat_error *err)
{
    const wav *w = d->own;
    size_t const wanted = qat_wave_samples(d->info.height);
    qat_wave wave = {0};
    if (w->piece[index] >= 0) {
        silence_of(d, w->piece[index], samples);
        return QAT_OK;
    }
    qat_status const st = qat_wave_read(&wave, w->files.paths[index], wanted, err);
    if (!st) {
        memset(samples, 0, wanted * sizeof *samples);
        memcpy(samples, wave.samples, wave.count * sizeof *samples);
    }
    free(wave.samples);
    return st;
}

static void wav_keep(qat_dataset *d, const int *kept, int n)
{
    wav *w = d->own;
    qat_files_keep(d, kept, n);
    qat_keep_items(w->piece, sizeof *w->piece, kept, n);
}

const qat_dataset_kind qat_kind_wav = {.name = "wav",
                                       .needs_path = true,
                                       .open = wav_open,
                                       .get = qat_dataset_get_sound,
                                       .splits = true,
                                       .validates = wav_validates,
                                       .sound = wav_sound,
                                       .background = wav_background,
                                       .file = qat_files_file,
                                       .keep = wav_keep};
