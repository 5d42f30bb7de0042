#!/bin/sh
# Networks of torchvision beside the ones of the same name here, where Python has torch and torchvision:
#     python3 -m venv venv && venv/bin/pip install torch torchvision
#     PEERS_PYTHON=venv/bin/python meson test -C build torchvision
python=${PEERS_PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "SKIP torchvision: $python has no torch and torchvision (PEERS_PYTHON names another Python)"
    exit 0
fi
exec "$python" "${QAT_SOURCE_ROOT:?}/tests/foreign/torchvision_compare.py" "$1"
