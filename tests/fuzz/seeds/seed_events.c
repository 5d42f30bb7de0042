/** Seeds of fuzz_events: small event files. usage: seed_events FOLDER */
#include "board/events.h"
#include "fuzz/seeds/seed.h"

#include <stdio.h>
#include <string.h>

static void write_events(const char *folder, const char *name, uint8_t until, size_t cut)
{
    qat_writer w = {0};
    qat_board_histogram h = {0};
    float const values[] = {-1, 0, 2};
    qat_write_u8(&w, until);
    qat_event_version(&w);
    for (int64_t step = 1; step < 4; step++)
        qat_event_scalar(&w, step, "train/loss", 1.0 / (double)step);
    qat_board_measure(&h, values, 2);
    qat_board_count(&h, values, 2);
    qat_event_histogram(&w, 4, "weights/a", &h);
    qat_event_text(&w, 4, "worst/table", "|a|\n");
    qat_event_png(&w, 4, "worst/1", 1, 1, 1, "png", 3);
    qat_event_end(&w, 4);
    if (!w.failed)
        seed_write(folder, name, w.bytes, w.count - cut);
    qat_writer_free(&w);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: seed_events FOLDER\n");
        return 2;
    }
    write_events(argv[1], "seed-whole", 4, 0);
    write_events(argv[1], "seed-half", 2, 0);
    write_events(argv[1], "seed-cut", 9, 5);
    return 0;
}
