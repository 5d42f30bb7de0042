"""TensorFlow Lite Micro's arena for .tflite files, in bytes: of activations and scratch, and in all. Needs tflite-micro."""
import os
import re
import subprocess
import sys

if len(sys.argv) == 3 and sys.argv[1] == "--one":  # the interpreter prints from C++, so a process of its own runs it
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(sys.argv[2], arena_size=4 << 20)
    details = interpreter.get_input_details(0)
    import numpy

    interpreter.set_input(numpy.zeros(details["shape"], details["dtype"]), 0)
    interpreter.invoke()
    interpreter.print_allocations()
else:
    for path in sys.argv[1:]:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", path], capture_output=True, text=True, check=True)
        said = done.stdout + done.stderr
        total, head = (re.search(rf"Arena allocation {what} (\d+) bytes", said).group(1) for what in ("total", "head"))
        print(path, head, total)
