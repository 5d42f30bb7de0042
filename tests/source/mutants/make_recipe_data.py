#!/usr/bin/env python3
"""Stand-ins for the data of recipes/paper that nobody here has: make_recipe_data.py FOLDER.

    FOLDER/imagenet       train/CLASS/*.png, val/CLASS/*.png: 1000 classes, one picture each
    FOLDER/coco           80 categories: annotations/*.json, images/
    FOLDER/faces-flickr   one category and attributes.csv: instances_train.json, instances_val.json, images/
"""
import json
import os
import random
import sys

from make_data import picture, png, write

SIZES = [(330, 410), (360, 300), (300, 300), (420, 340)]  # height, width
FLICKR = ["male", "glasses", "sunglasses", "beard", "moustache", "hat", "smiling", "eyes_closed", "earrings",
          "frontal", "outdoors", "blurred"]


def make_imagenet(root, rng):
    pool = os.path.join(root, "pool")
    os.makedirs(pool)
    for i, (height, width) in enumerate(SIZES):
        png(os.path.join(pool, "%d.png" % i), height, width, picture(rng, i % 3, height, width))
    for split in "train", "val":
        for kind in range(1000):
            folder = os.path.join(root, split, "n%08d" % kind)
            os.makedirs(folder)
            os.symlink("../../pool/%d.png" % (kind % len(SIZES)), os.path.join(folder, "0.png"))


def boxes_of(rng, height, width, categories):
    """As COCO writes them: x, y, width, height."""
    for _ in range(3):
        w, h = rng.uniform(0.2, 0.6) * width, rng.uniform(0.2, 0.6) * height
        yield rng.randrange(categories) + 1, [rng.uniform(0, width - w), rng.uniform(0, height - h), w, h]


def make_coco(root, rng, categories, files):
    os.makedirs(os.path.join(root, "images"), exist_ok=True)
    for split, (path, first) in files.items():
        images, annotations = [], []
        for i in range(first, first + 8):
            height, width = SIZES[i % len(SIZES)]
            name = "%s%02d.png" % (split, i)
            png(os.path.join(root, "images", name), height, width, picture(rng, i % 3, height, width))
            images.append({"id": i, "file_name": name, "height": height, "width": width})
            for category, box in boxes_of(rng, height, width, categories):
                annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": category, "bbox": box,
                                    "area": box[2] * box[3], "iscrowd": 0})
        names = [{"id": c + 1, "name": "thing %d" % (c + 1)} for c in range(categories)]
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        write(os.path.join(root, path),
              json.dumps({"images": images, "annotations": annotations, "categories": names}))


def make_attributes(root, rng):
    lines = ["file,split,age," + ",".join(FLICKR)]
    for split, name, first in (("train", "train", 0), ("val", "test", 8)):
        for i in range(first, first + 8):
            given = ["%d" % rng.randrange(2) for _ in FLICKR]
            lines.append("%s%02d.png,%s,%d,%s" % (name, i, split, rng.randrange(5, 80), ",".join(given)))
    write(os.path.join(root, "attributes.csv"), "\n".join(lines) + "\n")


def main():
    root, rng = sys.argv[1], random.Random(7)
    make_imagenet(os.path.join(root, "imagenet"), rng)
    make_coco(os.path.join(root, "coco"), rng, 80,
              {"train": ("annotations/instances_trainval_minus_minival.json", 0),
               "test": ("annotations/instances_minival.json", 8)})
    flickr = os.path.join(root, "faces-flickr")
    make_coco(flickr, rng, 1, {"train": ("instances_train.json", 0), "test": ("instances_val.json", 8)})
    make_attributes(flickr, rng)


if __name__ == "__main__":
    main()
