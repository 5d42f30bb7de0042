"""Writes headers as arrays of a C file: embed.py OUT ROOT HEADER...; a header stands after those that it includes."""
import os
import re
import sys

out, root, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
text = {os.path.relpath(h, root): open(h, encoding="utf-8").read() for h in headers}
order = []


def visit(name):
    if name in order:
        return
    for included in re.findall(r'^#include "([^"]+)"', text[name], re.M):
        for folder in ("include", "lib"):
            if f"{folder}/{included}" in text:
                visit(f"{folder}/{included}")
    order.append(name)


for name in sorted(text):
    visit(name)
with open(out, "w", encoding="utf-8") as f:
    f.write('#include "export/c/pieces.h"\n\n')
    for i, name in enumerate(order):
        numbers = [str(b) for b in text[name].encode() + b"\0"]
        lines = [", ".join(numbers[k : k + 24]) for k in range(0, len(numbers), 24)]
        f.write(f"static const char text_{i}[] = {{\n    " + ",\n    ".join(lines) + "};\n\n")
    f.write("const co_header co_headers[] = {\n")
    for i, name in enumerate(order):
        f.write(f'    {{"{name}", text_{i}, sizeof text_{i} - 1}},\n')
    f.write("    {0}};\n")
