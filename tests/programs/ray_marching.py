import numpy as np

W, H = 40, 30
u, v = np.meshgrid(np.linspace(-1, 1, W), np.linspace(0.75, -0.75, H))
d = np.stack((u, v, np.ones_like(u)), axis=-1)
d /= np.linalg.norm(d, axis=-1, keepdims=True)
o = np.array([0.0, 0.0, -3.0])
centers = np.array([[0, 0, 0], [0.8, 0.3, 0.5], [-0.9, -0.2, 0.4]])
radii = np.array([0.7, 0.4, 0.5])


def sdf(p):
    s = np.linalg.norm(p[..., None, :] - centers, axis=-1) - radii
    ground = p[..., 1] + 0.8
    return np.minimum(s.min(axis=-1), ground)


def normal(p, e=1e-4):
    n = np.zeros_like(p)
    for i in range(3):
        dp_ = np.zeros(3)
        dp_[i] = e
        n[..., i] = sdf(p + dp_) - sdf(p - dp_)
    return n / np.maximum(np.linalg.norm(n, axis=-1, keepdims=True), 1e-12)


t = np.zeros((H, W))
alive = np.ones((H, W), dtype=bool)
for _ in range(40):
    p = o + t[..., None] * d
    dist = sdf(p)
    alive &= t < 10
    t = np.where(alive, t + dist, t)
    if not (alive & (dist > 1e-3)).any():
        break
hit = alive & (sdf(o + t[..., None] * d) < 1e-2)
P = o + t[..., np.newaxis] * d
N = normal(P)
light = np.array([1.0, 2.0, -1.5])
light = light / np.sqrt(light @ light)
shade = np.clip(N @ light, 0, 1) * 0.9 + 0.1
img = np.zeros((H, W, 3))
img[hit] = shade[hit][:, None] * np.array([1.0, 0.8, 0.6])
img[~hit] = (0.2, 0.3, 0.5)
out = (255 * img ** (1 / 2.2)).astype(np.uint8)
r = d - 2 * np.sum(d * N, axis=-1, keepdims=True) * N
side = np.cross(d[0, 0], [0.0, 1.0, 0.0])
print(hit.sum(), out.shape, out.dtype)
t = np.round(t, 4)
img = np.round(img, 3)
