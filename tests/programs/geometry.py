import numpy as np

t = np.linspace(0, 2 * np.pi, 12, endpoint=False)
poly = np.c_[np.cos(t) * (2 + np.sin(3 * t)), np.sin(t) * (2 + np.cos(2 * t))]
x, y = poly.T
area = 0.5 * np.abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
per = np.hypot(*(poly - np.roll(poly, -1, axis=0)).T).sum()
cen = poly.mean(0)
th = np.deg2rad(30)
R = np.array([[np.cos(th), -np.sin(th)], [np.sin(th), np.cos(th)]])
rot = (poly - cen) @ R.T + cen
box = np.array([rot.min(axis=0), rot.max(axis=0)])
gx, gy = np.meshgrid(np.linspace(-3, 3, 20), np.linspace(-3, 3, 20), indexing="ij")
q = np.stack([gx.ravel(), gy.ravel()], 1)


def inside(pts, poly):
    res = np.zeros(len(pts), bool)
    j = len(poly) - 1
    for i in range(len(poly)):
        xi, yi = poly[i]
        xj, yj = poly[j]
        cond = ((yi > pts[:, 1]) != (yj > pts[:, 1])) & (
            pts[:, 0] < (xj - xi) * (pts[:, 1] - yi) / (yj - yi) + xi
        )
        res ^= cond
        j = i
    return res


ins = inside(q, poly)
tri = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1.0]])
nrm = np.cross(tri[1] - tri[0], tri[2] - tri[0])
nrm = nrm / np.linalg.norm(nrm)
H = np.eye(4)
H[:3, :3] = np.diag([1, 2, 3])
H[:3, 3] = [1, 1, 1]
hom = np.hstack([tri, np.ones((3, 1))]) @ H.T
ang = np.degrees(np.arctan2(poly[:, 1], poly[:, 0])) % 360
srt = poly[np.argsort(ang)]


def cross2(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


pts = q[ins]
pts = pts[np.lexsort((pts[:, 1], pts[:, 0]))]
hull = []
for p in pts:
    while len(hull) >= 2 and cross2(hull[-2], hull[-1], p) <= 0:
        hull.pop()
    hull.append(p)
hull = np.array(hull)
D = np.sqrt(np.add.outer((poly**2).sum(1), (poly**2).sum(1)) - 2 * poly @ poly.T + 1e-9)
far = np.unravel_index(D.argmax(), D.shape)
quat = np.array([np.cos(0.3), *(np.sin(0.3) * nrm)])
bary = np.linalg.solve(np.vstack([tri[:, :2].T, np.ones(3)]), np.array([0.2, 0.3, 1]))
print(round(float(area), 6), round(float(per), 6), ins.sum())
