#!/bin/sh
# Float .tflite networks of Keras beside the same networks here, where Python has tensorflow (PEERS_PYTHON).
python=${PEERS_PYTHON:-python3}
if ! "$python" -c 'import tensorflow' 2>/dev/null; then
    echo "SKIP tflite networks: $python has no tensorflow (PEERS_PYTHON names another Python)"
    exit 0
fi
exec "$python" "${QAT_SOURCE_ROOT:?}/tests/foreign/tflite_networks.py" "${QAT_BUILD_ROOT:?}/tools" "$1"
