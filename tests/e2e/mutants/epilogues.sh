# Sourced by mutants.sh: what a detector and a network of attributes leave to the program around them.

export_mutant detector-thresholds-swapped lib/train/detector.c \
    's/bits_of(r->score_threshold),/bits_of(r->iou_threshold),/; s/^ *bits_of(r->iou_threshold),/bits_of(r->score_threshold),/'
export_mutant detector-iou lib/train/detector.c 's/^ *bits_of(r->iou_threshold),/bits_of(0.5f),/'
export_mutant detector-score lib/train/detector.c 's/^ *bits_of(r->score_threshold),/bits_of(0.5f),/'
export_mutant detector-boxes lib/train/detector.c 's/params\[\] = {r->max_detections,/params[] = {100,/'
export_mutant detector-classes lib/train/detector.c 's/^ *d->classes,/d->classes + 1,/'
export_mutant detector-per-class lib/train/detector.c 's/^ *r->per_class,/1,/'
export_mutant detector-regular lib/train/detector.c 's/^ *r->regular,/0,/'
export_mutant detector-coder lib/train/detector.c 's/^ *bits_of(qat_ssd_coder.height),/bits_of(qat_ssd_coder.y),/'
export_mutant detector-outputs-swapped lib/train/detector.c 's/{graph->outputs\[0\], graph->outputs\[1\], anchors}/{graph->outputs[1], graph->outputs[0], anchors}/'
export_mutant detector-anchors-shifted lib/train/detector.c \
    's/memcpy(t.data, d->anchors, bytes);/memcpy(t.data, d->anchors, bytes); memcpy(t.data, d->anchors + 1, sizeof *d->anchors);/'
export_mutant detector-anchors-scale lib/train/detector.c 's/s.min_scale = r->detect.min_scale;//; s/s.max_scale = r->detect.max_scale;/s.max_scale = 0.9;/'
export_mutant detector-anchors-turned lib/detect/anchors.c 's/\.height = (float)(scale \/ sqrt(ratio))/.height = (float)(scale * sqrt(ratio))/; s/\.width = (float)(scale \* sqrt(ratio))/.width = (float)(scale \/ sqrt(ratio))/'
export_mutant detector-without-epilogue lib/train/integer_model.c 's/^    if (in->detector)$/    if (0)/'
export_mutant attributes-swapped lib/train/attributes.c 's/{bits_of(a->low), bits_of(a->width)}/{bits_of(a->width), bits_of(a->low)}/'
export_mutant attributes-low lib/train/attributes.c 's/{bits_of(a->low), /{bits_of(0), /'
export_mutant attributes-width lib/train/attributes.c 's/bits_of(a->width)}/bits_of(a->width * (float)(a->outputs + 1))}/'
export_mutant attributes-without-value lib/train/attributes.c 's/a->outputs ? 2 : 1,/1,/'
export_mutant attributes-without-epilogue lib/train/integer_model.c 's/return in->attributes.count ? qat_attributes_finish(&in->attributes, graph, err) : QAT_OK;/return QAT_OK;/'
