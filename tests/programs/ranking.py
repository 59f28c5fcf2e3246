import numpy as np

scores = np.array([88, 92, 79, 92, 85, 70, 88, 95])
order = scores.argsort()
ranks = np.empty_like(order)
ranks[order] = np.arange(len(scores))
uniq, inv, cnt = np.unique(scores, return_inverse=True, return_counts=True)
dense = inv + 1
avg = (np.cumsum(cnt) - (cnt - 1) / 2)[inv]
top3 = np.argpartition(-scores, 3)[:3]
top3 = top3[np.argsort(-scores[top3], kind="stable")]
names = ["a", "b", "c", "d", "e", "f", "g", "h"]
best = [names[i] for i in top3]
groups = np.array([0, 1, 0, 1, 2, 2, 0, 1])
gsum = np.bincount(groups, weights=scores)
gmean = gsum / np.bincount(groups)
gmax = np.full(3, -np.inf)
np.maximum.at(gmax, groups, scores)
idx = np.argsort(groups, kind="mergesort")
cuts = np.flatnonzero(np.diff(groups[idx])) + 1
parts = np.split(scores[idx], cuts)
med = [np.median(q) for q in parts]
m = np.arange(24).reshape(4, 6)
m2 = m[:, ::-1].copy()
m2[m2 % 2 == 0] *= -1
srt = np.sort(m2, axis=1)
col = m2[m2[:, 2].argsort()]
pos = np.searchsorted(np.sort(scores), [80, 90], side="right")
tr = np.take_along_axis(m2, np.argsort(m2, axis=0), axis=0)
sel = np.select([scores > 90, scores > 80], ["x" and 2, 1], default=0)
pw = np.piecewise(
    scores.astype(float),
    [scores < 80, scores >= 90],
    [lambda v: v - 10, lambda v: v + 10, lambda v: v],
)
ch = np.choose(groups, [scores, scores * 2, scores * 3])
dig = np.digitize(scores, bins=[75, 85, 90])
d = dict(zip(names, scores.tolist()))
sw = np.lib.stride_tricks.sliding_window_view if False else None
a, b = scores[::2], scores[1::2]
a, b = np.where(a < b, a, b), np.where(a < b, b, a)
both = np.intersect1d(a, b)
either = np.union1d(a, b)
only = np.setdiff1d(a, b)
s = slice(1, None, 3)
print(best, med, scores[s], d["h"], scores[-1] > scores[0], scores.max() - scores.min())
