"""Each chart of a page has a drawing, axes with units, and its numbers as a table; nothing comes from elsewhere."""

import re
import sys
from html.parser import HTMLParser

# What counts, and so has no unit.
COUNTS = ("training step", "number of values", "curve")


class Charts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.charts = []  # of each: its name, the heads and the number of rows of its table
        self.depth = 0  # in <div>s of a chart
        self.head = None
        self.pictures = []
        self.figures = 0

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        for key in ("src", "href", "xlink:href"):
            if a.get(key) and not a[key].startswith(("data:image/png;base64,", "#")):
                sys.exit(f"<{tag} {key}={a[key][:60]}>: comes from elsewhere")
        if tag == "script":
            sys.exit("a script")
        if tag == "div" and (self.depth or "chart" in a.get("class", "").split()):
            if not self.depth:
                self.charts.append([None, [], 0])
            self.depth += 1
        if tag == "figure":
            self.figures += 1
        if tag == "svg" and not a.get("aria-label"):
            sys.exit("a drawing without a name")
        if tag == "img" and not a.get("alt"):
            sys.exit("a picture without words")
        if tag == "svg" and self.depth:
            self.charts[-1][0] = a["aria-label"]
        if tag == "th" and self.depth:
            self.head = ""
        if tag == "tr" and self.depth:
            self.charts[-1][2] += 1

    def handle_endtag(self, tag):
        if tag == "div" and self.depth:
            self.depth -= 1
        if tag == "th" and self.depth:
            self.charts[-1][1].append(self.head)
            self.head = None

    def handle_data(self, data):
        if self.head is not None:
            self.head += data


page = Charts()
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
page.feed(text)
if len(text.encode()) > 3_000_000:
    sys.exit(f"{len(text.encode())} bytes")
if re.search(r"url\(|@import|https?://(?!www\.w3\.org/)", text):
    sys.exit("an address of another place")
if not page.charts:
    sys.exit("no chart")
for name, heads, rows in page.charts:
    if not name:
        sys.exit("a chart without a drawing")
    if rows < 2 or len(heads) < 2:
        sys.exit(f"{name}: no table of its numbers")
    for head in heads:
        if head not in COUNTS and not head.startswith("code q") and not re.search(r"\[.+\]", head):
            sys.exit(f"{name}: no unit in '{head}'")
print(f"{len(page.charts)} charts, {page.figures} figures")
