import numpy as np

n, k = 120, 3
t = np.arange(n)
pts = (
    np.array([np.cos(t * 2.4) * (1 + t % 3), np.sin(t * 1.7) * (1 + t % 3)]).T
    + 5 * (t % 3)[:, np.newaxis]
)
centers = pts[:k].copy()
for it in range(20):
    d = np.sqrt(((pts[:, None, :] - centers[None, :, :]) ** 2).sum(-1))
    labels = d.argmin(axis=1)
    new = np.array(
        [pts[labels == j].mean(axis=0) if np.any(labels == j) else centers[j] for j in range(k)]
    )
    if np.allclose(new, centers):
        break
    centers = new
inertia = sum(((pts[labels == j] - centers[j]) ** 2).sum() for j in range(k))
sizes = np.bincount(labels, minlength=k)
order = np.lexsort((centers[:, 1], centers[:, 0]))
centers = centers[order]
onehot = np.eye(k)[labels]
conf = np.zeros((k, k), dtype=int)
np.add.at(conf, (labels, t % 3), 1)
dist = np.linalg.norm(pts[:, None] - pts[None], axis=-1)
nn = np.argsort(dist, axis=1)[:, 1:4]
np.fill_diagonal(dist, np.inf)
closest = np.unravel_index(np.argmin(dist), dist.shape)
standard = (pts - pts.mean(axis=0)) / pts.std(axis=0)
cov = np.cov(pts, rowvar=False)
evals, evecs = np.linalg.eigh(cov)
proj = standard @ np.abs(evecs[:, ::-1])
print(sizes, float(inertia) > 0, tuple(int(c) for c in closest))
