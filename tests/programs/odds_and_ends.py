import numpy as np

np.set_printoptions(precision=4, suppress=True)
a = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
print(a)
print(repr(a.shape), a.dtype, a.ndim, a.size, a.nbytes, a.itemsize)
a += 1
a[0] *= 2
a[:, -1] = 0
assert a.flags["C_CONTIGUOUS"] and not a.T.flags.c_contiguous
for row in a:
    print(row, row.sum())
for i, v in enumerate(a.flat):
    a.flat[i] = float(v) + i
for (i, j), v in np.ndenumerate(a):
    assert a[i, j] == v
x = np.float32(2) * a + np.int64(1) - np.array(3)
b = a.astype(int).tolist()
s = a.sum()
if s > 10:
    print("big", s)
k = int(a.max())
lst = list(range(k))
z = lst[np.argmax([3, 9, 2])]
m = np.ones((3, 4))
m[1, :] = range(4)
m[2] = [9, 8, 7, 6]
m[:, [0, 2]] = m[:, [2, 0]]
m[m > 5] = 5
m[np.ix_([0, 2], [1, 3])] += 10
m.shape = (2, 6)
c = m.reshape(-1, 3, order="F")
e = np.empty((0, 3))
c = np.append(c, [[1, 2, 3]], axis=0)
c = np.delete(c, 0, axis=0)
c = np.insert(c, 1, 7, axis=1)
f = np.tile([1, 2], (2, 2))
g = np.repeat([[1, 2], [3, 4]], 2, axis=1)
h = np.hstack(([1, 2], [3]))
o = np.zeros((2, 2))
np.copyto(o, [[1, 2], [3, 4]])
np.multiply(o, 2, out=o)
w = np.divide(o, [[0, 1], [2, 0]], out=np.zeros_like(o), where=np.array([[0, 1], [2, 0]]) != 0)
t = (
    np.mean([1, 2, 3, 4]),
    np.std([1, 2, 3]),
    np.sqrt(16),
    np.max([[1, 5], [2, 3]], axis=1),
    np.dot([1, 2], [3, 4]),
    np.cumsum([1, 2, 3]),
)
p = np.prod(a.shape)
q = np.power(2, np.arange(5))
n = np.logspace(0, 2, 3)
st = np.linspace(0, 1, 5, retstep=True)[1]
y = np.arange(10)[::-1][2:8:2]
inf = np.isinf(np.array([1, np.inf]))
nn = np.nan_to_num(np.array([np.nan, 1, -np.inf]), nan=0, neginf=-1)
eq = (
    np.array_equal(y, [7, 5, 3]),
    np.allclose([1.0], [1.0 + 1e-9]),
    (y == 7).any(),
    all(y > 0),
    5 in y,
)
u = np.vectorize(lambda v: v * 2 if v > 4 else v)(y)
r = np.apply_along_axis(lambda v: v / v.sum(), 1, np.array([[1.0, 3.0], [2.0, 2.0]]))
d = np.diag([1, 2, 3])
tr = np.trace(d)
ei = np.eye(3, k=1)
fl = np.flip(d, 0)
sq = np.squeeze(d[None])
ex = np.expand_dims(y, 0)
as_str = np.array2string(np.array([1.5, 2.25]), separator=",")
mi = np.minimum([1, 5], [3, 2])
hs = np.hsplit(np.arange(8), 2)
rs = np.resize([1, 2, 3], (2, 4))
wh = np.where(y > 4)[0]
wz = np.argwhere(y > 4).ravel()
mod = -7 % np.array([3, -3])
fd = np.array([7, -7]) // 2
print(t[2], "%d %.2f" % (p, t[0]), f"{t[1]:.3f}", f"{s:.1f}", as_str, st, eq, z)
b = np.array(b)
mx = t[3]
dot = t[4]
cs = t[5]
hs = hs[1]
