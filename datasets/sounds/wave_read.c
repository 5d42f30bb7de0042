/**
 * Reads WAV files with libsndfile. What it is given begins as a WAV file of the length that its
 * header says; so none of its other readers runs on a stranger's file. It gets the file by
 * functions of this one, and what it says of length and channels is checked before memory is taken.
 */
#include "datasets/sounds/wave.h"

#include "base/files/file.h"
#include "qat/sound.h"

#include <errno.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHANNELS = 2, BLOCK = 1024, HEAD = 12 };

/** An open WAV file. */
typedef struct source {
    const char *path;
    FILE *file;
    int64_t bytes;
    SNDFILE *sound;
    SF_INFO info;
} source;

bool qat_wave_can_read(void)
{
    return true;
}

/* ------------------------------------------------------------------ what libsndfile calls */

static sf_count_t length_of(void *of)
{
    return ((const source *)of)->bytes;
}

static sf_count_t place_of(void *of)
{
    return ftello(((source *)of)->file);
}

static sf_count_t seek_in(sf_count_t offset, int whence, void *of)
{
    return fseeko(((source *)of)->file, offset, whence) ? -1 : place_of(of);
}

static sf_count_t read_from(void *to, sf_count_t count, void *of)
{
    return count < 1 ? 0 : (sf_count_t)fread(to, 1, (size_t)count, ((source *)of)->file);
}

static sf_count_t write_to(const void *from, sf_count_t count, void *of)
{
    (void)from;
    (void)count;
    (void)of;
    return 0;
}

/* ------------------------------------------------------------------ the header */

/** "RIFF", the size of what follows, "WAVE". A size of 0 or 2^32 - 1 is not known, as in a stream.
 */
static qat_status check_head(const source *s, qat_error *err)
{
    uint8_t head[HEAD] = {0};
    size_t const got = fread(head, 1, HEAD, s->file);
    uint64_t const size = (uint64_t)head[4] | (uint64_t)head[5] << 8 | (uint64_t)head[6] << 16 |
                          (uint64_t)head[7] << 24;
    if (got < HEAD || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: not a WAV file", s->path);
    if (size && size != UINT32_MAX && size + 8 > (uint64_t)s->bytes)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: the file ends before its sound does: %lld bytes, %llu announced",
                        s->path, (long long)s->bytes, (unsigned long long)size + 8);
    return QAT_OK;
}

static qat_status check_info(const source *s, qat_error *err)
{
    int const coding = s->info.format & SF_FORMAT_SUBMASK;
    bool const known = coding == SF_FORMAT_PCM_U8 || coding == SF_FORMAT_PCM_16 ||
                       coding == SF_FORMAT_PCM_24 || coding == SF_FORMAT_PCM_32 ||
                       coding == SF_FORMAT_FLOAT;
    if (!known || s->info.channels < 1 || s->info.channels > CHANNELS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: a WAV file of %d channels and coding 0x%x; " QAT_WAVE_FORMATS
                        " can be read",
                        s->path, s->info.channels, (unsigned)coding);
    if (s->info.samplerate != QI_SOUND_RATE)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: %d samples a second, but %d are wanted: sox IN.wav -r %d OUT.wav, or "
                        "ffmpeg -i IN.wav -ar %d OUT.wav, converts it",
                        s->path, s->info.samplerate, QI_SOUND_RATE, QI_SOUND_RATE, QI_SOUND_RATE);
    return QAT_OK;
}

static qat_status open_source(source *s, qat_error *err)
{
    SF_VIRTUAL_IO functions = {length_of, seek_in, read_from, write_to, place_of};
    struct stat about;
    errno = 0;
    if (stat(s->path, &about) == 0 && !S_ISREG(about.st_mode)) /* to open a pipe would be to wait */
        return qat_fail(err, QAT_ERR_IO, "%s: not a file", s->path);
    s->file = fopen(s->path, "rb");
    if (!s->file || fstat(fileno(s->file), &about))
        return qat_file_fail(err, "open", s->path, errno);
    s->bytes = (int64_t)about.st_size;
    qat_status const st = check_head(s, err);
    if (st)
        return st;
    rewind(s->file);
    s->sound = sf_open_virtual(&functions, SFM_READ, &s->info, s);
    if (!s->sound)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: a WAV file that cannot be read; " QAT_WAVE_FORMATS " can", s->path);
    return check_info(s, err);
}

static void close_source(source *s)
{
    if (s->sound)
        (void)sf_close(s->sound);
    if (s->file)
        (void)fclose(s->file);
}

/* ------------------------------------------------------------------ the samples */

/** The upper 16 bits of the channels' mean, rounded down. */
static int16_t mixed(const int32_t *values, int channels)
{
    int64_t sum = 0;
    for (int c = 0; c < channels; c++)
        sum += values[c];
    int64_t const one = (int64_t)channels << 16;
    return (int16_t)(sum >= 0 ? sum / one : -((-sum + one - 1) / one));
}

/** The mean times 2^15, rounded to the nearest; what is no number is silence. */
static int16_t mixed_real(const float *values, int channels)
{
    double sum = 0;
    for (int c = 0; c < channels; c++)
        sum += isnan(values[c]) ? 0 : fmin(fmax((double)values[c], -2), 2);
    return qat_wave_clamp((int64_t)floor(sum / channels * 32768 + 0.5));
}

/** Read and mix up to BLOCK frames; returns their number. */
static size_t read_block(const source *s, int16_t *to, size_t room)
{
    union {
        int32_t whole[BLOCK * CHANNELS];
        float real[BLOCK * CHANNELS];
    } v;
    bool const real = (s->info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_FLOAT;
    int const channels = s->info.channels;
    sf_count_t const wanted = room < BLOCK ? (sf_count_t)room : BLOCK;
    sf_count_t const got =
        real ? sf_readf_float(s->sound, v.real, wanted) : sf_readf_int(s->sound, v.whole, wanted);
    for (sf_count_t i = 0; i < got; i++)
        to[i] = real ? mixed_real(v.real + i * channels, channels)
                     : mixed(v.whole + i * channels, channels);
    return got > 0 ? (size_t)got : 0;
}

static qat_status read_samples(const source *s, qat_wave *wave, size_t most, qat_error *err)
{
    uint64_t const there = s->info.frames > 0 ? (uint64_t)s->info.frames : 0;
    uint64_t const wanted = most && most < there ? most : there;
    if (wanted > QAT_WAVE_MOST_SAMPLES)
        return qat_fail(err, QAT_ERR_LIMIT, "%s: a sound of %llu samples; at most %d can be read",
                        s->path, (unsigned long long)there, QAT_WAVE_MOST_SAMPLES);
    /* a sample takes at least a byte of the file, whatever its header says */
    uint64_t const room = wanted < (uint64_t)s->bytes ? wanted : (uint64_t)s->bytes;
    wave->samples = malloc((size_t)(room + 1) * sizeof *wave->samples);
    if (!wave->samples)
        return qat_out_of_memory(err, s->path);
    for (size_t got = 1; wave->count < room && got; wave->count += got)
        got = read_block(s, wave->samples + wave->count, (size_t)room - wave->count);
    if (wave->count < wanted)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: the file ends before its sound does: %zu samples of %llu", s->path,
                        wave->count, (unsigned long long)wanted);
    return QAT_OK;
}

qat_status qat_wave_read(qat_wave *wave, const char *path, size_t most, qat_error *err)
{
    source s = {.path = path};
    *wave = (qat_wave){0};
    qat_status st = open_source(&s, err);
    if (!st)
        st = read_samples(&s, wave, most, err);
    close_source(&s);
    return st;
}
