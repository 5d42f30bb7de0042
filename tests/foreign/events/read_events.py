"""Reads the event files of runs with TensorBoard, and compares them with log.csv: tensorboard.sh."""
import csv
import os
import sys

import numpy
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.util import tensor_util

failed = 0


def check(what, good):
    global failed
    failed |= not good
    print(("ok - " if good else "not ok - ") + what)


def rows_of(run):
    with open(os.path.join(run, "log.csv")) as file:
        return list(csv.DictReader(file))


def column(rows, name):
    """(step, float32) where there is a value."""
    return [(int(r["step"]), float(numpy.float32(r[name]))) for r in rows if r[name]]


def scalars(a, tag):
    return [(e.step, e.value) for e in a.Scalars(tag)] if tag in a.Tags()["scalars"] else []


def near(a, b):
    """log.csv has six digits of most figures."""
    return len(a) == len(b) and all(
        x[0] == y[0] and abs(x[1] - y[1]) <= 1e-5 * max(1e-3, abs(y[1])) for x, y in zip(a, b)
    )


def see_scalars(name, a, rows):
    check(name + ": the loss is log.csv's", near(scalars(a, "train/loss"), column(rows, "loss")))
    check(name + ": the rate is log.csv's", near(scalars(a, "train/learning_rate"), column(rows, "lr")))
    check(
        name + ": the gradient's norm is log.csv's",
        near(scalars(a, "train/gradient_norm"), column(rows, "gradient_norm")),
    )
    for kind in ("float", "integer", "simulated"):
        for figure in [c for c in rows[0] if c.startswith(kind + "_")]:
            tag = figure[len(kind) + 1 :] + "/" + kind
            check("%s: %s is log.csv's" % (name, tag), near(scalars(a, tag), column(rows, figure)))


def see_histograms(name, a, quantized, channels):
    tags = a.Tags()["histograms"]
    sums = all(
        abs(sum(h.histogram_value.bucket) - h.histogram_value.num) < 0.5
        and h.histogram_value.bucket_limit[-1] == h.histogram_value.max
        for t in tags
        for h in a.Histograms(t)
    )
    check(name + ": bins add up to the values", sums and len(tags) > 4)
    for group in ("weights/", "activations/"):
        steps = {h.step for t in tags if t.startswith(group) for h in a.Histograms(t)}
        check("%s: %s at each evaluation" % (name, group), steps == {3, 6})
    ranges = [t for t in a.Tags()["scalars"] if t.startswith("ranges/")]
    check(name + ": ranges where it quantizes", bool(ranges) == quantized)
    check(name + ": scales of channels", any(t.startswith("scales/") for t in tags) == channels)


def see_graph(name, a):
    graph = a.Graph()
    names = {n.name for n in graph.node}
    check(
        name + ": the graph's edges lead to nodes",
        len(names) == len(graph.node) > 5 and all(i in names for n in graph.node for i in n.input),
    )


def see_pictures(name, a, some):
    tags = a.Tags()["images"]
    check(name + ": pictures of the worst answers", (len(tags) == 8) == some)
    for tag in tags:
        for image in a.Images(tag):
            header = image.encoded_image_string[16:24]
            size = image.width.to_bytes(4, "big") + image.height.to_bytes(4, "big")
            if not image.encoded_image_string.startswith(b"\x89PNG") or header != size:
                check(name + ": " + tag + " is a PNG of its size", False)
    if "worst/table" in a.Tags()["tensors"]:
        text = tensor_util.make_ndarray(a.Tensors("worst/table")[-1].tensor_proto).item().decode()
        check(name + ": a table of them", text.startswith("| | sample |") and text.count("\n") == 10)


def see(run):
    name = os.path.basename(run)
    folder = os.path.join(run, "tensorboard")
    a = EventAccumulator(folder, size_guidance={k: 0 for k in ("scalars", "histograms", "images", "tensors")})
    a.Reload()
    rows = rows_of(run)
    quantized = name != "floats"
    see_scalars(name, a, rows)
    see_histograms(name, a, quantized, name in ("channels", "words"))
    see_graph(name, a)
    see_pictures(name, a, name in ("quickstart", "channels", "floats", "faces", "labels"))
    events = list(EventFileLoader(os.path.join(folder, "events.out.tfevents.0.qat")).Load())
    check(name + ": the time of an event is its step", all(e.wall_time == e.step for e in events))
    check(name + ": steps do not fall", all(x.step <= y.step for x, y in zip(events, events[1:])))


def see_settings(runs):
    """As the HPARAMS page gets them."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(runs)
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, runs)
    hparams = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=100,
        allowed_statuses=[api_pb2.STATUS_SUCCESS],
        include_metrics=True,
    )
    groups = list_session_groups.Handler(context.RequestContext(), hparams, "", request).run().session_groups
    by_name = {g.sessions[0].name.split("/")[0]: g for g in groups}
    check("HPARAMS lists every run as finished", sorted(by_name) == sorted(os.listdir(runs)))
    rate = {n: g.hparams["train.lr"].number_value for n, g in by_name.items()}
    check("HPARAMS has the rates", rate["channels"] == 0.02 and rate["quickstart"] == 0.1)
    check(
        "HPARAMS has words, and yes and no",
        by_name["floats"].hparams["train.optimizer"].string_value == "adam"
        and by_name["floats"].hparams["quant.enabled"].bool_value is False
        and by_name["quickstart"].hparams["quant.enabled"].bool_value is True,
    )
    last = rows_of(os.path.join(runs, "quickstart"))[-1]
    metrics = {m.name.tag: m.value for m in by_name["quickstart"].metric_values}
    check(
        "HPARAMS has the last figures",
        abs(metrics["top1/integer"] - float(last["integer_top1"])) < 1e-3
        and abs(metrics["train/loss"] - float(last["loss"])) < 1e-5,
    )


for folder in sorted(os.listdir(sys.argv[1])):
    see(os.path.join(sys.argv[1], folder))
see_settings(sys.argv[1])
sys.exit(failed)
