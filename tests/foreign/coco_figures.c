/**
 * Prints COCO's figures for a set that is written as text. coco_compare.py computes the same
 * figures with COCO's own program. Boxes are in shares of the picture. Each line of the text is one
 * of
 *
 *     picture HEIGHT WIDTH
 *     object CLASS CROWD AREA YMIN XMIN YMAX XMAX
 *     found CLASS SCORE YMIN XMIN YMAX XMAX
 *
 * usage: coco_figures CLASSES <set.txt; prints the twelve figures in COCO's order
 */
#include "qat/detect.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PICTURES = 200, MAX_EACH = 400 };

static qat_truth objects[MAX_PICTURES][MAX_EACH];
static qat_found boxes[MAX_PICTURES][MAX_EACH];
static qat_scored_picture pictures[MAX_PICTURES];

static int read_line(const char *line, int *n)
{
    qat_box b;
    int class, crowd;
    double height, width, area;
    float score;
    qat_scored_picture *p = *n ? &pictures[*n - 1] : NULL;
    if (sscanf(line, "picture %lf %lf", &height, &width) == 2 && *n < MAX_PICTURES) {
        pictures[*n] = (qat_scored_picture){height, width, objects[*n], 0, boxes[*n], 0};
        ++*n;
        return 1;
    }
    if (p && p->n_truth < MAX_EACH &&
        sscanf(line, "object %d %d %lf %f %f %f %f", &class, &crowd, &area, &b.ymin, &b.xmin,
               &b.ymax, &b.xmax) == 7) {
        objects[*n - 1][p->n_truth++] = (qat_truth){b, class, crowd != 0, area};
        return 1;
    }
    if (p && p->n_found < MAX_EACH &&
        sscanf(line, "found %d %f %f %f %f %f", &class, &score, &b.ymin, &b.xmin, &b.ymax,
               &b.xmax) == 6) {
        boxes[*n - 1][p->n_found++] = (qat_found){b, class, score};
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    char line[256];
    int n = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (!read_line(line, &n)) {
            fprintf(stderr, "coco_figures: cannot read: %s", line);
            return 2;
        }
    }
    qat_scored_set const set = {pictures, n, argc > 1 ? atoi(argv[1]) : 1};
    qat_coco_figures f;
    qat_error err;
    if (qat_average_precision(&f, &set, &err)) {
        fprintf(stderr, "coco_figures: %s\n", err.message);
        return 1;
    }
    printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", f.ap,
           f.ap50, f.ap75, f.ap_small, f.ap_medium, f.ap_large, f.ar1, f.ar10, f.ar100, f.ar_small,
           f.ar_medium, f.ar_large);
    return 0;
}
