# Sourced by mutants.sh: what a detector and a network of attributes leave to the program around them.

export_mutant detector-thresholds-swapped lib/task/detector.c \
    's/qat_task_bits(r->score_threshold),/qat_task_bits(r->iou_threshold),/; s/^ *qat_task_bits(r->iou_threshold),/qat_task_bits(r->score_threshold),/'
export_mutant detector-iou lib/task/detector.c 's/^ *qat_task_bits(r->iou_threshold),/qat_task_bits(0.5f),/'
export_mutant detector-score lib/task/detector.c 's/^ *qat_task_bits(r->score_threshold),/qat_task_bits(0.5f),/'
export_mutant detector-boxes lib/task/detector.c 's/params\[\] = {r->max_detections,/params[] = {100,/'
export_mutant detector-classes lib/task/detector.c 's/^ *d->classes,/d->classes + 1,/'
export_mutant detector-per-class lib/task/detector.c 's/^ *r->per_class,/1,/'
export_mutant detector-regular lib/task/detector.c 's/^ *r->regular,/0,/'
export_mutant detector-coder lib/task/detector.c 's/^ *qat_task_bits(qat_ssd_coder.height),/qat_task_bits(qat_ssd_coder.y),/'
export_mutant detector-outputs-swapped lib/task/detector.c 's/{graph->outputs\[0\], graph->outputs\[1\], anchors}/{graph->outputs[1], graph->outputs[0], anchors}/'
export_mutant detector-anchors-shifted lib/task/detector.c \
    's/return qat_qgraph_tensor(graph, &t, err);/int const i = qat_qgraph_tensor(graph, \&t, err); memcpy(graph->tensors[i].data, d->anchors + 1, sizeof *d->anchors); return i;/'
export_mutant detector-anchors-scale lib/task/detector.c 's/s.min_scale = r->detect.min_scale;//; s/s.max_scale = r->detect.max_scale;/s.max_scale = 0.9;/'
export_mutant detector-anchors-turned lib/detect/anchors.c 's/\.height = (float)(scale \/ sqrt(ratio))/.height = (float)(scale * sqrt(ratio))/; s/\.width = (float)(scale \* sqrt(ratio))/.width = (float)(scale \/ sqrt(ratio))/'
export_mutant detector-without-epilogue lib/task/boxes.c 's/^    .finish = qat_detector_finish,$//'
export_mutant attributes-swapped lib/task/attributes.c 's/{qat_task_bits(a->low), qat_task_bits(a->width)}/{qat_task_bits(a->width), qat_task_bits(a->low)}/'
export_mutant attributes-low lib/task/attributes.c 's/{qat_task_bits(a->low), /{qat_task_bits(0), /'
export_mutant attributes-width lib/task/attributes.c 's/qat_task_bits(a->width)}/qat_task_bits(a->width * (float)(a->outputs + 1))}/'
export_mutant attributes-without-value lib/task/attributes.c 's/a->outputs ? 2 : 1,/1,/'
export_mutant attributes-without-epilogue lib/deploy/integer_model.c 's/return task->finish ? task->finish(in, graph, err) : QAT_OK;/return QAT_OK;/'
