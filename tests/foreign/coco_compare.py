"""Random detections judged by coco_figures and by pycocotools: their twelve figures must agree.

Boxes lie on a grid of 1/64 and scores on one of 1/16, so that IoU thresholds are met exactly, scores
tie, and both sides compute with the same numbers. Usage: coco_compare.py PATH-OF-coco_figures [CASES]
"""
import contextlib
import io
import random
import subprocess
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

BOUND = 1e-12
GRID = 64


def random_box(rng, near=None):
    """ymin, xmin, ymax, xmax in shares; near: another box, of which it is a variation."""
    if near:
        moved = [round(v * GRID) + rng.choice((-2, -1, 0, 0, 0, 1, 2)) for v in near]
        y0, y1 = sorted(moved[0::2])
        x0, x1 = sorted(moved[1::2])
    else:
        y0, y1 = sorted(rng.sample(range(GRID + 1), 2))
        x0, x1 = sorted(rng.sample(range(GRID + 1), 2))
    return (y0 / GRID, x0 / GRID, max(y1, y0 + 1) / GRID, max(x1, x0 + 1) / GRID)


def random_picture(rng, classes, crowded):
    size = (rng.choice((128, 256, 512)), rng.choice((128, 256, 512)))
    objects, found = [], []
    for _ in range(rng.choice((0, 1, 2, 3, 12))):
        box = random_box(rng)
        area = (box[2] - box[0]) * size[0] * (box[3] - box[1]) * size[1]
        objects.append((rng.randrange(classes), int(rng.random() < 0.2), area * rng.choice((1, 0.5)), box))
    for _ in range(150 if crowded else rng.choice((0, 1, 5, 20))):
        source = rng.choice(objects) if objects and rng.random() < 0.7 else None
        box = random_box(rng, source[3] if source else None)
        label = source[0] if source and rng.random() < 0.9 else rng.randrange(classes)
        found.append((label, rng.randrange(17) / 16, box))
    return size, objects, found


def as_text(pictures):
    lines = []
    for size, objects, found in pictures:
        lines.append("picture %d %d" % size)
        lines += ["object %d %d %r %r %r %r %r" % (o[:3] + o[3]) for o in objects]
        lines += ["found %d %r %r %r %r %r" % (f[:2] + f[2]) for f in found]
    return "\n".join(lines) + "\n"


def pixels(box, size):
    """COCO's x, y, width, height."""
    return [box[1] * size[1], box[0] * size[0], (box[3] - box[1]) * size[1], (box[2] - box[0]) * size[0]]


def judged_by_coco(pictures, classes):
    images, annotations, results = [], [], []
    for i, (size, objects, found) in enumerate(pictures):
        images.append({"id": i + 1, "height": size[0], "width": size[1]})
        for label, crowd, area, box in objects:
            annotations.append({"id": len(annotations) + 1, "image_id": i + 1, "category_id": label + 1,
                                "iscrowd": crowd, "area": area, "bbox": pixels(box, size)})
        for label, score, box in found:
            results.append({"image_id": i + 1, "category_id": label + 1, "score": score,
                            "bbox": pixels(box, size)})
    truth = COCO()
    truth.dataset = {"info": {}, "images": images, "annotations": annotations,
                     "categories": [{"id": c + 1} for c in range(classes)]}
    truth.createIndex()
    judge = COCOeval(truth, truth.loadRes(results), "bbox")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    return list(judge.stats)


def main():
    program, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    largest = 0
    for case in range(cases):
        rng = random.Random(case)
        classes = rng.choice((1, 3))
        pictures = [random_picture(rng, classes, case % 5 == 0) for _ in range(12)]
        if not any(p[2] for p in pictures):
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            theirs = judged_by_coco(pictures, classes)
        done = subprocess.run([program, str(classes)], input=as_text(pictures), text=True,
                              capture_output=True, check=True)
        ours = [float(v) for v in done.stdout.split()]
        difference = max(abs(a - b) for a, b in zip(ours, theirs))
        largest = max(largest, difference)
        if len(ours) != 12 or not difference <= BOUND:
            print("not ok - case %d: ours %s, pycocotools %s" % (case, ours, theirs))
            return 1
    print("ok - %d cases, largest difference of a figure %.2g (bound %g)" % (cases, largest, BOUND))
    return 0


if __name__ == "__main__":
    sys.exit(main())
