/** What extents.c collects and calibrated.c compares with. */
#ifndef QAT_CERTIFY_EXTENTS_H
#define QAT_CERTIFY_EXTENTS_H

#include "certify/certify.h"

struct cert_extents {
    cert c;
    qat_certify_source source;
    qat_graph *graph;
    double *min, *max; /* by root of a class; min > max: nothing seen */
    bool *broken;      /* by root: a value was NaN or infinite */
    double **counts;   /* by root: CERT_BINS of them */
    bool is_counting;
};

#endif
