"""Figures beside scikit-learn's: compare.py PROGRAM CASES. Each case is drawn by cases.c."""
import json
import subprocess
import sys
import warnings

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve

warnings.filterwarnings("ignore")
compared = 0
largest = 0.0


def near(ours, theirs, what):
    global compared, largest
    compared += 1
    off = abs(ours - theirs)
    largest = max(largest, off)
    if not off <= 1e-9:
        sys.exit(f"not ok - {what}: {ours}, scikit-learn {theirs}")


def on_curve(points, x, y, what):
    """Each point lies on scikit-learn's curve; the pictures leave some of them out."""
    points = np.array(points)
    there = np.stack([x, y], 1)
    for point in points:
        near(np.abs(there - point).max(1).min(), 0, what)


def unit(case, u, truth, scores):
    known = ~np.isnan(truth)
    truth, scores = truth[known].astype(int), scores[known]
    if 0 < truth.sum() < len(truth):
        near(u["auc"], metrics.roc_auc_score(truth, scores), f"{case} AUC")
        fpr, tpr, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
        on_curve(u["roc"], fpr, tpr, f"{case} ROC")
        precision, recall, _ = metrics.precision_recall_curve(truth, scores)
        on_curve(u["precision_recall"], recall, precision, f"{case} precision and recall")
    elif u["auc"] is not None:
        sys.exit(f"not ok - {case}: an AUC of one kind of samples")
    if truth.sum():
        near(u["ap"], metrics.average_precision_score(truth, scores), f"{case} AP")
        near(u["best_f1"], max(metrics.f1_score(truth, scores >= t) for t in np.unique(scores)), f"{case} best F1")
        near(u["best_f1"], metrics.f1_score(truth, scores >= u["best_threshold"] - 1e-12), f"{case} threshold")


def shares(case, f, truth, answers, labels):
    p, r, f1, n = metrics.precision_recall_fscore_support(truth, answers, labels=labels, zero_division=0)
    for k, u in enumerate(f["units"]):
        for name, value in (("precision", p[k]), ("recall", r[k]), ("f1", f1[k]), ("samples", n[k])):
            near(u[name], value, f"{case} {name}")
    for mean in "macro", "weighted":
        p, r, f1, _ = metrics.precision_recall_fscore_support(truth, answers, labels=labels, average=mean, zero_division=0)
        for name, value in (("precision", p), ("recall", r), ("f1", f1)):
            near(f[mean][name], value, f"{case} {mean} {name}")


def calibration(case, c, right, probability):
    true, mean = calibration_curve(right, probability, n_bins=15)
    bins = [b for b in c["bins"] if b["n"]]
    assert len(bins) == len(true) and sum(b["n"] for b in bins) == len(right)
    for b, t, m in zip(bins, true, mean):
        near(b["right"], t, f"{case} bin")
        near(b["probability"], m, f"{case} bin")
    weights = np.array([b["n"] for b in bins]) / len(right)
    near(c["ece"], (weights * np.abs(true - mean)).sum(), f"{case} ECE")


def compare(seed):
    subprocess.run([sys.argv[1], ".", str(seed)], check=True)
    with open("figures.json") as file:
        f = json.load(file)["figures"]
    scores = np.load("scores.npy").astype(float)
    truth = np.load("truth.npy").astype(float)
    case = f"case {seed} ({f['kind']})"
    labels = list(range(scores.shape[1]))
    if f["kind"] == "one_of":
        truth = truth[:, 0].astype(int)
        answers = scores.argmax(1)
        if scores.min() < 0 or scores.max() > 1:
            scores = np.exp(scores - scores.max(1, keepdims=True))
            scores /= scores.sum(1, keepdims=True)
        assert f["confusion"] == metrics.confusion_matrix(truth, answers, labels=labels).tolist(), case
        near(f["accuracy"], metrics.accuracy_score(truth, answers), f"{case} accuracy")
        shares(case, f, truth, answers, labels)
        calibration(case, f["calibration"], truth == answers, scores.max(1))
        hot = (truth[:, None] == np.array(labels)).astype(float)
        if len(truth) > 1:
            near(f["auc_of_all"], metrics.roc_auc_score(hot.ravel(), scores.ravel()), f"{case} micro AUC")
            near(f["ap_of_all"], metrics.average_precision_score(hot, scores, average="micro"), f"{case} micro AP")
    elif f["kind"] == "values":
        for k, u in enumerate(f["units"]):
            t, s = truth[:, k], scores[:, k]
            near(u["mean_error"], metrics.mean_absolute_error(t, s), f"{case} mean error")
            near(u["root_mean_square"], metrics.mean_squared_error(t, s) ** 0.5, f"{case} RMSE")
            if len(t) > 1:
                near(u["r2"], metrics.r2_score(t, s), f"{case} R2")
        return
    else:
        hot = truth
        if f["kind"] == "each":
            known = ~np.isnan(truth)
            calibration(case, f["calibration"], truth[known], scores[known])
            for k, u in enumerate(f["units"]):
                t, a = truth[known[:, k], k], scores[known[:, k], k] >= 0.5
                near(u["f1"], metrics.f1_score(t, a, zero_division=0), f"{case} F1")
                near(u["recall"], metrics.recall_score(t, a, zero_division=0), f"{case} recall")
    for k, u in enumerate(f["units"]):
        unit(case, u, hot[:, k], scores[:, k])


for i in range(int(sys.argv[2])):
    compare(i)
print(f"ok - {compared} figures of {sys.argv[2]} random cases are scikit-learn's; the largest difference is {largest:.1e}")
