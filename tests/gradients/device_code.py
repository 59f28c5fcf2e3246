"""Kernels whose derivatives are tested."""

from __future__ import annotations

import math
from typing import Any

import dparray as dp


@dp.kernel
def chain(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    v = math.sin(x[i]) * y[i]
    out[i] = v * v + math.exp(-x[i])


@dp.kernel
def stencil(item: Any, u: Any, c: Any, out: Any) -> None:
    i = item.get_id(0)
    n = u.shape[0]
    left = 0.0
    if i > 0:
        left = u[i - 1]
    right = u[i + 1] if i < n - 1 else 0.0
    out[i] = u[i] + c[i] * (left + right - 2 * u[i])


@dp.kernel
def heat(item: Any, u: Any, out: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n, m = u.shape
    if 0 < i < n - 1 and 0 < j < m - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + 0.1 * (around - 4 * u[i, j])
    else:
        out[i, j] = u[i, j]


@dp.kernel
def wrapped(item: Any, u: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = u[i - 1] * u[i - 2] + u[i]  # negative indices count from the end


@dp.kernel
def behind(item: Any, u: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = u[i - 1] * u[i - 2]


@dp.kernel
def shifted(item: Any, u: Any, out: Any) -> None:
    i = item.get_id(0)
    if i == 0:
        out[i] = u[i + 1]
    else:
        out[i] = u[i - 1] * u[i + 2] + math.sin(u[i])


@dp.kernel
def turned(item: Any, u: Any, out: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    s = 1.0
    for k in range(4):
        s = s * u[j, i] + k * u[j, i + 1]
    out[i, j] = s


@dp.kernel
def rows(item: Any, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    total = 0.0
    scale = b[i]
    for j in range(a.shape[1]):
        total += a[i, j] * a[i, j] * math.exp(scale)
    out[i] = math.sqrt(total + 1.0) * scale


@dp.kernel
def pairwise(item: Any, p: Any, q: Any, out: Any) -> None:
    i = item.get_id(0)
    energy = 0.0
    for j in range(q.shape[0]):
        d = 0.0
        for k in range(p.shape[1]):
            t = p[i, k] - q[j, k]
            d += t * t
        energy += 1.0 / math.sqrt(d + 0.1)
    out[i] = energy


@dp.kernel
def among(item: Any, p: Any, out: Any) -> None:
    i = item.get_id(0)
    energy = p[i, 0] * p[i, 0]
    for j in range(p.shape[0]):
        d = 0.0
        for k in range(p.shape[1]):
            t = p[i, k] - p[j, k]
            d += t * t
        energy += 1.0 / math.sqrt(d + 0.1)
    out[i] = energy


@dp.kernel
def charges(item: Any, x: Any, w: Any, out: Any) -> None:
    i = item.get_id(0)
    field = 0.0
    for j in range(x.shape[0]):
        if j != i:
            d = x[i] - x[j]
            field += w[j] / (d * d + 0.1)
    out[i] = w[i] * field


@dp.kernel
def pairs_in_space(item: Any, p: Any, q: Any, w: Any, out: Any) -> None:
    i = item.get_id(0)
    energy = 0.0
    for j in range(q.shape[0]):
        d = 0.0
        for k in range(3):
            t = p[i, k] - q[j, k]
            d += t * t * w[k]
        if d > 0.5:
            energy += w[0] / math.sqrt(d + 0.1)
    out[i] = energy


@dp.kernel
def gather(item: Any, x: Any, at: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[at[i]] ** 3 + max(x[i], 0.1)


@dp.kernel
def scatter(item: Any, x: Any, at: Any, out: Any) -> None:
    i = item.get_id(0)
    out[at[i]] = x[i] * x[i]


@dp.kernel
def interleaved(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[2 * i] = x[i]
    out[2 * i + 1] = x[i] ** 2


@dp.kernel
def store_in_branch(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    if x[i] > 0:
        v = x[i] * x[i]
        out[i] = v * 3.0
    else:
        out[i] = math.exp(x[i])


@dp.kernel
def before_loop(item: Any, x: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    g = x[i] * x[i]
    s = 0.0
    for k in range(n):
        s += x[i] * k
    out[i] = s * g


@dp.kernel
def conditional_sum(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    s = 1.0
    for k in range(y.shape[0]):
        if y[k] > x[i]:
            d = y[k] - x[i]
            s += d * d * x[i]
        else:
            s -= math.sin(y[k]) * x[i]
    out[i] = s / (1.0 + x[i] * x[i])


@dp.kernel
def reassigned(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = x[i]
    v = v * v + 1.0
    v = math.log(v) * x[i]
    w = v if v > 0.1 else v * v
    if w > 0.3:
        w = w * 2.0
        if w > 1.0:
            w = math.sqrt(w)
    out[i] = w + v


@dp.kernel
def triangle(item: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    s = 0.0
    t = 0.0
    for j in range(a.shape[1]):
        u = a[i, j]
        u = u * u
        for k in range(j):
            u2 = a[i, k] * u
            s += u2
            t += u2 * u2
        s += u
    out[i] = s * t


@dp.kernel
def window(item: Any, x: Any, radius: Any, out: Any) -> None:
    i = item.get_id(0)
    s = 0.0
    for j in range(max(0, i - radius), min(x.shape[0], i + radius + 1)):
        s += x[j] * math.exp(-0.1 * (i - j) * (i - j))
    out[i] = math.tanh(s)


@dp.kernel
def largest(item: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    best = -1e20
    for j in range(a.shape[1]):
        if a[i, j] > best:
            best = a[i, j]
    out[i] = best


@dp.kernel
def recurrence(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    h = 0.0
    for k in range(x.shape[1]):
        h = math.tanh(h + x[i, k])
    out[i] = h


@dp.kernel
def fixed_recurrence(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    h = x[i]
    a, b = x[i], 1.0
    for _ in range(5):
        h = math.tanh(h * h + 0.3 * x[i])
        a, b = b, a * b + 0.5
    out[i] = h * (a - b)


@dp.kernel
def breaks(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    s = 0.0
    for j in range(y.shape[0]):
        if y[j] > 1.5:
            break
        if y[j] < -0.5:
            continue
        s = s * 0.5 + math.sin(x[i] * y[j])
    out[i] = s


@dp.kernel
def growth(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = x[i]
    k = 0
    while v < 10.0 and k < 30:
        v = v * 1.3 + 0.1 * x[i] + 0.5
        k += 1
    out[i] = v


@dp.kernel
def newton(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = 1.0
    while True:
        w = 0.5 * (v + (1 + x[i] ** 2) / v)
        if abs(w - v) < 1e-14:
            break
        v = w
    out[i] = v


@dp.device_func
def polynomial(a: Any, b: Any) -> Any:
    if a > b:
        return a * b
    s = a
    for _ in range(3):
        s = s * b + a
    return s


@dp.kernel
def functions_of_device(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = polynomial(x[i], y[i]) + polynomial(y[i], x[i]) ** 2


@dp.kernel
def nested(item: Any, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    h = b[i]
    for j in range(a.shape[0]):
        g = h
        for k in range(j + 1):
            g = math.sin(g * a[j, k] + h)
        if g > 0.0:
            for k in range(2, -1, -1):
                h = h * g + 0.1 * a[j, k]
        else:
            h = h + g * g
    out[i] = h * h


@dp.kernel
def three_loops(item: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    h = a[i]
    for j in range(a.shape[0]):
        h = math.sin(h + a[j])
    g = h
    for j in range(0, a.shape[0], 2):
        g = math.cos(g * h + a[j])
    c = 0
    while g < 3.0 and c < 4:
        g = g + h * g + 0.3
        c += 1
    out[i] = g * h


@dp.kernel
def steps(item: Any, x: Any, step: Any, out: Any) -> None:
    i = item.get_id(0)
    h = x[i]
    for k in range(1, 9, step):
        h = h * h * 0.3 + k * 0.1
    out[i] = h


@dp.kernel
def with_else(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    s = 0.0
    for _ in range(5):
        s = s * s + x[i]
        if s > 2.0:
            s = s * 3.0
            break
    else:
        s = s * x[i]
    for _ in range(3):
        for _ in range(3):
            s = s + x[i] * s
            if s > 5.0:
                break
        if s > 20.0:
            s = -s
            break
    out[i] = s


@dp.kernel
def early_return(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    if x[i] < 0.0:
        return
    v = 0.0
    for j in range(10):
        v += x[i] * j
        if v > 3.0:
            out[i] = v * v
            return
    out[i] = math.exp(v)


@dp.kernel
def accumulated(item: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    for j in range(a.shape[1]):
        out[i] += a[i, j] ** 2
    out[i] += 3.0 * a[i, 0]


@dp.kernel
def overwritten(item: Any, a: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] * 5.0
    if a[i] > 0.0:
        out[i] = a[i] ** 3


@dp.kernel
def reduction(item: Any, x: Any, w: Any, out: Any) -> None:
    i = item.get_id(0)
    dp.AtomicRef(out, 0).fetch_add(x[i] * x[i] * w[0])
    dp.AtomicRef(out, 1).fetch_sub(x[i])


@dp.kernel
def filtered(item: Any, x: Any, w: Any, out: Any) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    s = w[1, 1]
    for a in range(3):
        for b in range(3):
            s += w[a, b] * x[i + a, j + b] ** 2
    out[i, j] = s


@dp.kernel
def blurred(item: Any, x: Any, w: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    s = 0.0
    for a in range(5):
        for b in range(5):
            s += w[a, b] * x[i + a, j + b]
    out[i, j] = s


@dp.kernel
def of_table(item: Any, x: Any, w: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = x[i, j] * w[i % 5, j % 5]


@dp.kernel
def shared_weights(item: Any, x: Any, w: Any, out: Any) -> None:
    i = item.get_id(0)
    if x[i] > 0.0:
        v = x[i]
        for k in range(3):
            v = math.tanh(w[k, 0] * v + w[k, 1])
        out[i] = v
    else:
        out[i] = w[0, 0] * x[i] * w[2, 1]


@dp.kernel
def powers(item: Any, x: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    v = x[i]
    out[i] = v**3 + v ** n[i] + (1 + v * v) ** 0.7 + 1.3**v + (2 + math.sin(v)) ** (-2) + v**2.0


@dp.kernel
def mathematics(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    a = x[i]
    b = y[i]
    p = abs(a) + 0.5
    q = a / (1.0 + abs(a))
    r = math.asin(q) + math.acos(q) * b + math.atan(a) + math.sinh(a) + math.cosh(a)
    r += math.tanh(a) + math.asinh(a) + math.acosh(1 + p) + math.atanh(q) + math.exp(a)
    r += dp.exp2(a) + math.expm1(a) + math.log(p) + math.log2(p) + math.log10(p) + math.log1p(p)
    r += math.sqrt(p) + dp.cbrt(p) + math.sin(a) * math.cos(b) + math.tan(q)
    r += math.erf(a) + math.erfc(b) + math.degrees(a) + math.radians(b) + math.atan2(a, b)
    r += math.hypot(a, b) + math.copysign(a, b) + math.fmod(a, b) + math.fabs(b)
    r += math.floor(a) * b + math.ldexp(a, 2) + math.pow(p, b) + a % 0.7 + b // 0.3
    r += max(a, b, 0.1) - min(a, b) + dp.where(a > b, a * a, b) + dp.sign(a) * b
    out[i] = r + dp.clip(a, -0.5, 0.5)


@dp.kernel
def vectors(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = dp.vec(x[i, 0], x[i, 1], x[i, 2])
    w = dp.vec(x[i, 1], 2.0, x[i, 0])
    for _ in range(3):
        v = v * w + dp.vec(1.0, 0.0, -1.0)
    out[i] = (v * v).sum() + v.x


@dp.kernel
def parts(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    row = x[i]
    s = 0.0
    for k in range(row.shape[0]):
        s += row[k] * row[k]
    out[i] = s


@dp.kernel
def in_groups(item: Any, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    s = x[i, j]
    for _ in range(i + j):
        s = math.sin(s) + 1.0
    out[i, j] = s


@dp.kernel
def two_outputs(item: Any, x: Any, a: Any, b: Any) -> None:
    i = item.get_id(0)
    s = math.sin(x[i])
    a[i] = s * x[i]
    b[i] = s + 2 * x[i]


@dp.kernel
def of_complex(item: Any, z: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = z[i] * z[i] * 2j + z[i].real


@dp.kernel
def equal_at_ties(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = max(x[i], 0.0) + 2 * min(x[i], 0.0) + 4 * abs(x[i])


@dp.kernel
def guarded_root(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = dp.where(x[i] > 0, math.sqrt(x[i]), 0.0)


@dp.elementwise
def smooth(x: Any, y: Any, k: Any = 2.0) -> Any:
    if x > y:
        return math.log(1 + math.exp(k * (x - y)))
    s = x
    for _ in range(3):
        s = math.sin(s) * y
    return s


@dp.elementwise
def square_and_sine(x: Any) -> Any:
    return x * x, math.sin(x)


cubed = dp.elementwise(lambda x: x**3)


# --- without a derivative -------------------------------------------------------------------------


@dp.kernel
def in_place(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    x[i] = x[i] * 2
    out[i] = x[i]


@dp.kernel
def read_after_write(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i]
    if i > 0:
        out[i] = x[i] + out[i - 1]


@dp.kernel
def squared_output(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i]
    out[i] = out[i] * out[i]


@dp.kernel
def at_barrier(item: Any, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    dp.group_barrier(item.get_group())
    out[i] = x[i]


@dp.kernel
def with_local(item: Any, x: Any, tile: Any, out: Any) -> None:
    i = item.get_global_id(0)
    tile[item.get_local_id(0)] = x[i]
    out[i] = tile[item.get_local_id(0)]


@dp.kernel
def sum_of_group(item: Any, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = dp.reduce_over_group(item.get_group(), x[i], "add")


@dp.kernel
def atomic_result(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = dp.AtomicRef(out, 0).fetch_add(x[i])


@dp.kernel
def atomic_maximum(item: Any, x: Any, out: Any) -> None:
    dp.AtomicRef(out, 0).fetch_max(x[item.get_id(0)])


@dp.kernel
def both_ways(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i]
    dp.AtomicRef(out, i).fetch_add(x[i])


@dp.kernel
def large_array(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a = dp.PrivateArray(100, x.dtype)
    a[i] = x[i]
    out[i] = a[i]


@dp.kernel
def chosen_array(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    a = x if i > 1 else y
    out[i] = a[i]


@dp.kernel
def gamma(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.lgamma(x[i])


@dp.kernel
def private_powers(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    p = dp.PrivateArray(20, x.dtype)
    p[0] = 1.0
    for k in range(1, 20):
        p[k] = p[k - 1] * x[i]
    total = 0.0
    for k in range(20):
        total += p[k] * p[-1 - k] + k * p[k]
    out[i] = total


@dp.device_func
def _rotated(p: Any, by: Any) -> None:
    before = p[0]
    p[0] = p[0] * by - p[1]
    p[1] = p[1] * by + before


@dp.kernel
def private_overwritten(item: Any, x: Any, at: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    p = dp.PrivateArray(3, x.dtype, fill_zeros=True)
    for j in range(n):
        k = at[(i + j) % at.shape[0]] % 3
        p[k] = p[k] * p[(k + 1) % 3] + math.sin(x[i] + j)
        if p[k] > 0.9:
            break
        if k == 1:
            p[0] += p[2] * x[i]
    q = dp.PrivateArray((2, 2), x.dtype)
    q[0, 0] = p[0]
    q[0, 1] = p[1]
    q[1, 0] = p[2]
    q[1, i % 2] = x[i] ** 2 if i % 2 else p[2] * x[i]
    _rotated(q[0], p[2])
    out[i] = q[0, 0] * q[0, 1] + q[1, 0] * (x[i], p[1], q[0, 1])[i % 3]


@dp.kernel
def private_in_loop(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    total = 0.0
    for j in range(x.shape[1]):
        p = dp.PrivateArray(2, x.dtype)
        p[j % 2] = x[i, j]
        p[1 - j % 2] = total
        for k in range(3):
            if k > 0:
                p[k - 1] += p[k] * 0.1 if k < 2 else 0.1
        total += p[0] * p[1] * p[1] + p[0]
    out[i] = total
