#!/bin/sh
# Average precision beside COCO's own program, where Python ($QAT_PYTHON, or python3) has it:
#     python3 -m venv venv && venv/bin/pip install pycocotools
#     QAT_PYTHON=venv/bin/python meson test -C build pycocotools
python=${QAT_PYTHON:-python3}
if ! "$python" -c 'import pycocotools.cocoeval' 2>/dev/null; then
    echo "SKIP pycocotools: $python has no module of this name (QAT_PYTHON names another Python)"
    exit 0
fi
exec "$python" "${QAT_SOURCE_ROOT:?}/tests/foreign/coco_compare.py" "$1"
