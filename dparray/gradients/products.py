"""The rules of products, linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dparray.exceptions import GradientError
from dparray.gradients.calls import COMPOSED, COMPOSED_OF_TILE, ROWS_BY_NAME, apply, is_array
from dparray.gradients.elementwise import compose, function_of, register
from dparray.gradients.public import dp
from dparray.gradients.rows import Bilinear, Linear, Pulled
from dparray.gradients.shapes import resized
from dparray.gradients.tape import conjugate
from dparray.gradients.traced import constants


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose."""
    return conjugate(dp.matrix_transpose(x))


def _of_matmul(place: int, g: Any, a: Any, b: Any, **_: Any) -> Any:
    x, other = (a, b) if place == 0 else (b, a)
    if a.ndim == 1 and b.ndim == 1:
        return g * conjugate(other)
    g = dp.expand_dims(g, -2) if a.ndim == 1 else g
    g = dp.expand_dims(g, -1) if b.ndim == 1 else g
    if place == 0:
        made = g @ adjoint(b if b.ndim > 1 else dp.expand_dims(b, -1))
        line = -2
    else:
        made = adjoint(a if a.ndim > 1 else dp.expand_dims(a, 0)) @ g
        line = -1
    if x.ndim > 1:
        return made
    made = dp.squeeze(made, axis=line)
    # A vector is multiplied with each matrix of a stack.
    return dp.sum(made, axis=tuple(range(made.ndim - 1))) if made.ndim > 1 else made


def _of_einsum(place: int, g: Any, text: str, *operands: Any, **_: Any) -> Any:
    """Return the cotangent of an operand, another product that is summed over letters."""
    parts, result = letters_of(text, operands)
    at = place - 1
    letters, x = parts.pop(at), operands[at]
    if len(set(letters)) < len(letters):
        raise GradientError(
            f"einsum: {text!r} has an operand with a repeated index, which has no "
            "derivative; take dp.diagonal(x) first"
        )
    known = set(result).union(*parts)
    inner = "".join([c for c in letters if c in known])
    others = [conjugate(y) for y in (*operands[:at], *operands[at + 1 :])]
    made = dp.einsum(f"{','.join([result, *parts])}->{inner}", g, *others)
    if inner == letters:
        return made
    shape = tuple([n if c in known else 1 for c, n in zip(letters, x.shape, strict=True)])
    return dp.broadcast_to(dp.reshape(made, shape), x.shape)


def letters_of(text: str, operands: Any) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, without ellipses."""
    left, arrow, right = text.replace(" ", "").partition("->")
    parts = left.split(",")
    counts = [
        x.ndim - len(part.replace("...", "")) for part, x in zip(parts, operands, strict=True)
    ]
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
    dots = free[
        : max([n for n, part in zip(counts, parts, strict=True) if "..." in part], default=0)
    ]
    whole = [
        part.replace("...", "".join(dots[len(dots) - n :]))
        for part, n in zip(parts, counts, strict=True)
    ]
    if arrow:
        return whole, right.replace("...", "".join(dots))
    letters = left.replace(",", "").replace("...", "")
    single = sorted(c for c in set(letters) if letters.count(c) == 1)
    return whole, "".join(dots) + "".join(single)


def _einsum(text: Any, *operands: Any, **options: Any) -> Any:
    if not isinstance(text, str):
        raise GradientError("einsum: has a derivative for subscripts as a string only")
    return apply(_EINSUM, (text, *operands), options)


_EINSUM = Bilinear("einsum", dp.einsum, _of_einsum)


def _dot(a: Any, b: Any, /) -> Any:
    a, b = (x if is_array(x) else dp.asarray(x) for x in (a, b))
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return a @ b if b.ndim <= 2 else dp.tensordot(a, b, ((-1,), (-2,)))


def _of_convolve(place: int, g: Any, a: Any, b: Any) -> Any:
    x, other = (a, b) if place == 0 else (b, a)
    whole = dp.convolve(g, conjugate(dp.flip(other)))
    start = other.shape[0] - 1
    return whole[start : start + x.shape[0]]


def _convolve(a: Any, b: Any, mode: str = "full") -> Any:
    a, b = (b, a) if a.shape[0] < b.shape[0] else (a, b)
    made = apply(ROWS_BY_NAME["convolve"], (a, b), {})
    n, m = a.shape[0], b.shape[0]
    if mode == "same":
        return made[(m - 1) // 2 : (m - 1) // 2 + n]
    return made if mode == "full" else made[m - 1 : n]


def _correlate(a: Any, b: Any, mode: str = "valid") -> Any:
    if a.shape[0] < b.shape[0] and mode != "full":
        return dp.flip(conjugate(_convolve(b, dp.flip(conjugate(a)), mode)))
    return _convolve(a, dp.flip(conjugate(b)), mode)


# -- linear algebra -------------------------------------------------------------------------------


def _eye(n: int, like: Any) -> Any:
    return dp.eye(n, dtype=_real_dtype(like), sycl_queue=like.queue)


def _real_dtype(x: Any) -> Any:
    return np.dtype(f"f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x.dtype


def _outer_of(w: Any, x: Any, is_vector: bool) -> Any:
    if is_vector:
        return dp.expand_dims(w, -1) * conjugate(dp.expand_dims(x, -2))
    return w @ adjoint(x)


def _pull_solve(place: int, g: Any, x: Any, a: Any, b: Any) -> Any:
    w = dp.linalg.solve(adjoint(a), g)
    return w if place == 1 else -_outer_of(w, x, b.ndim == 1)


def _pull_solve_triangular(
    place: int,
    g: Any,
    x: Any,
    a: Any,
    b: Any,
    lower: bool = False,
    unit_diagonal: bool = False,
    **options: Any,
) -> Any:
    if options.get("trans") not in (None, 0, "N"):
        raise GradientError("solve_triangular: trans= has no derivative; transpose the matrix")
    w = dp.linalg.solve_triangular(adjoint(a), g, lower=not lower, unit_diagonal=unit_diagonal)
    if place == 1:
        return w
    made = -_outer_of(w, x, b.ndim == 1)
    made = dp.tril(made) if lower else dp.triu(made)
    return made - made * _eye(a.shape[-1], a) if unit_diagonal else made


def _pull_inv(place: int, g: Any, r: Any, a: Any) -> Any:
    h = adjoint(r)
    return -(h @ g @ h)


def _pull_det(place: int, g: Any, r: Any, a: Any) -> Any:
    """Return the cotangent by cofactors for singular matrices of at most 3 rows, too."""
    n = a.shape[-1]
    if n > 3:
        return dp.expand_dims(g * conjugate(r), (-1, -2)) * adjoint(dp.linalg.inv(a))
    rows = [[_cofactor(a, i, j) for j in range(n)] for i in range(n)]
    minors = dp.stack([dp.stack(row, axis=-1) for row in rows], axis=-2)
    return dp.expand_dims(g, (-1, -2)) * conjugate(minors)


def _cofactor(a: Any, i: int, j: int) -> Any:
    n = a.shape[-1]
    rows, columns = ([k for k in range(n) if k != at] for at in (i, j))
    sign = -1 if (i + j) % 2 else 1
    if n == 1:
        return dp.ones_like(a[..., 0, 0])
    if n == 2:
        return sign * a[..., rows[0], columns[0]]
    first = a[..., rows[0], columns[0]] * a[..., rows[1], columns[1]]
    return sign * (first - a[..., rows[0], columns[1]] * a[..., rows[1], columns[0]])


def _pull_slogdet(place: int, g: Any, r: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        raise GradientError("slogdet: has no derivative for complex matrices")
    return dp.expand_dims(g[1], (-1, -2)) * adjoint(dp.linalg.inv(a))


def _pull_cholesky(place: int, g: Any, r: Any, a: Any, /, *, upper: bool = False) -> Any:
    if upper:
        r, g = adjoint(r), adjoint(g)
    middle = adjoint(r) @ g
    middle = dp.tril(middle) - 0.5 * middle * _eye(r.shape[-1], r)
    left = dp.linalg.solve_triangular(adjoint(r), middle, lower=False)
    made = adjoint(dp.linalg.solve_triangular(adjoint(r), adjoint(left), lower=False))
    return 0.5 * (made + adjoint(made))


def _gaps(w: Any) -> tuple[Any, Any]:
    """Return the identity, and the inverse differences of eigenvalues, 0 on the diagonal."""
    eye = _eye(w.shape[-1], w)
    return eye, (1 - eye) / (dp.expand_dims(w, -2) - dp.expand_dims(w, -1) + eye)


def _pull_eigh(place: int, g: Any, r: Any, a: Any, *_: Any, **__: Any) -> Any:
    w, v = r
    eye, inverse = _gaps(w)
    inner = inverse * (adjoint(v) @ g[1])
    made = v @ (dp.expand_dims(g[0], -1) * eye + inner) @ adjoint(v)
    return 0.5 * (made + adjoint(made))


def _pull_svd(place: int, g: Any, r: Any, a: Any, full_matrices: bool = True, **_: Any) -> Any:
    u, s, vh = r
    if a.dtype.kind == "c":
        raise GradientError("svd: has no derivative for complex matrices")
    rows, columns = a.shape[-2:]
    if full_matrices and rows != columns:
        raise GradientError("svd: has a derivative with full_matrices=False only")
    gu, gs, gv, v = g[0], g[1], adjoint(g[2]), adjoint(vh)
    size = s.shape[-1]
    eye = _eye(size, s)
    row, column = dp.expand_dims(s, -2), dp.expand_dims(s, -1)
    gaps = (1 - eye) / ((row - column) * (row + column) + eye)
    of_u, of_v = gaps * (adjoint(u) @ gu), gaps * (vh @ gv)
    middle = (of_u + adjoint(of_u)) * row + column * (of_v + adjoint(of_v))
    made = u @ (middle + dp.expand_dims(gs, -1) * eye) @ vh
    if rows > size:
        made = made + (gu - u @ (adjoint(u) @ gu)) / row @ vh
    if columns > size:
        made = made + (u / row) @ adjoint(gv - v @ (vh @ gv))
    return made


def _pull_qr(place: int, g: Any, r: Any, a: Any, mode: str = "reduced") -> Any:
    if mode != "reduced" or a.shape[-2] < a.shape[-1] or a.dtype.kind == "c":
        raise GradientError(
            "qr: has a derivative for real matrices with at least as many rows as columns, with "
            "mode='reduced'"
        )
    q, t = r
    gq, gr = g
    m = t @ adjoint(gr) - adjoint(gq) @ q
    lower = dp.tril(m, -1)
    symmetric = lower + adjoint(lower) + m * _eye(m.shape[-1], m)
    return adjoint(dp.linalg.solve_triangular(t, adjoint(gq + q @ symmetric), lower=False))


def _pull_lu(place: int, g: Any, r: Any, a: Any, *_: Any, **options: Any) -> Any:
    if options or a.shape[-1] != a.shape[-2]:
        raise GradientError("lu: has a derivative for square matrices without options only")
    p, low, up = r
    left = dp.tril(adjoint(low) @ g[1], -1)
    right = dp.triu(g[2] @ adjoint(up))
    middle = dp.linalg.solve_triangular(adjoint(low), left + right, lower=False, unit_diagonal=True)
    made = adjoint(dp.linalg.solve_triangular(up, adjoint(middle), lower=False))
    return p @ made


def _pull_eigvals(place: int, g: Any, r: Any, a: Any) -> Any:
    _, v = dp.linalg.eig(a)
    return dp.linalg.solve(adjoint(v), dp.expand_dims(g, -1) * adjoint(v))


def _pull_eig(place: int, g: Any, r: Any, a: Any) -> Any:
    w, v = r
    eye, inverse = _gaps(w)
    vh = adjoint(v)
    # Eigenvectors have length 1: their component along themselves is removed.
    vg = vh @ g[1]
    along = dp.real(vg * eye)
    inner = conjugate(inverse) * (vg - (vh @ v) @ (along + 0j))
    return dp.linalg.solve(vh, (dp.expand_dims(g[0], -1) * eye + inner) @ vh)


def _pull_expm(place: int, g: Any, r: Any, a: Any) -> Any:
    """Return the cotangent by the exponential of a block matrix."""
    h = adjoint(a)
    n = a.shape[-1]
    upper = dp.concatenate([h, g], axis=-1)
    lower = dp.concatenate([dp.zeros_like(constants(h)), h], axis=-1)
    return dp.linalg.expm(dp.concatenate([upper, lower], axis=-2))[..., :n, n:]


def _pinv(a: Any, /, **options: Any) -> Any:
    if any(value is not None for value in options.values()):
        raise GradientError("pinv: has a derivative without a tolerance only")
    u, s, vh = dp.linalg.svd(a, full_matrices=False)
    return adjoint(vh) @ (adjoint(u) / dp.expand_dims(s, -1))


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the solution for a matrix of full column rank; the other results are constants."""
    if a.ndim != 2 or a.shape[0] < a.shape[1]:
        raise GradientError(
            "lstsq: has a derivative for at least as many rows as columns; use pinv(a) @ b"
        )
    q, r = dp.linalg.qr(a)
    x = dp.linalg.solve_triangular(r, adjoint(q) @ b, lower=False)
    _, residuals, rank, s = dp.linalg.lstsq(constants(a), constants(b), rcond)
    return x, residuals, rank, s


def _cho_solve(factor: Any, b: Any, **_: Any) -> Any:
    c, lower = factor
    first = dp.linalg.solve_triangular(c if lower else adjoint(c), b, lower=True)
    return dp.linalg.solve_triangular(adjoint(c) if lower else c, first, lower=False)


# -- Fourier transforms ---------------------------------------------------------------------------

_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _complex(g: Any) -> Any:
    return g if g.dtype.kind == "c" else g + 0j


def _of_fft(inverse: str) -> Callable[..., Any]:
    def transposed(g: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        made = getattr(dp.fft, inverse)(_complex(g), axis=axis, norm=_OPPOSITE[norm])
        return resized(made, x.shape[axis], axis)

    return transposed


def _of_rfft(g: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    whole = resized(_complex(g), n or x.shape[axis], axis)
    made = dp.real(dp.fft.ifft(whole, axis=axis, norm=_OPPOSITE[norm]))
    return resized(made, x.shape[axis], axis)


def _of_irfft(g: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    size = g.shape[axis]
    made = dp.fft.rfft(g, axis=axis, norm=_OPPOSITE[norm])
    weights = np.full(size // 2 + 1, 2.0)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    shape = [1] * g.ndim
    shape[axis] = -1
    scale = dp.asarray(weights.reshape(shape), dtype=g.dtype, sycl_queue=g.queue)
    return resized(made * scale, x.shape[axis], axis)


def _over_axes(name: str, default: Any) -> Callable[..., Any]:
    """Return a transform over several axes, one after another."""

    def transformed(x: Any, s: Any = None, axes: Any = default, norm: Any = "backward") -> Any:
        if axes is None:
            count = x.ndim if s is None else len(s)
            axes = tuple(range(x.ndim - count, x.ndim))
        sizes = [None] * len(axes) if s is None else list(s)
        one = dp.fft.ifft if name.startswith("i") else dp.fft.fft
        pairs = list(zip(axes, sizes, strict=True))
        if name == "rfft":
            x = dp.fft.rfft(x, pairs[-1][1], pairs[-1][0], norm)
        rest = pairs[:-1] if "r" in name else pairs
        for axis, n in reversed(rest):
            x = one(x, n, axis, norm)
        if name == "irfft":
            x = dp.fft.irfft(x, pairs[-1][1], pairs[-1][0], norm)
        return x

    return transformed


def _hfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    return dp.fft.irfft(conjugate(x), n, axis, _OPPOSITE[norm])


def _ihfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    return conjugate(dp.fft.rfft(x, n, axis, _OPPOSITE[norm]))


def _tile_conv(
    x: Any,
    w: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    channels: str = "last",
) -> Any:
    """Return the convolution ``dp.tilelang.conv`` as products of concatenated windows."""
    windows, count = dp.tilelang.windows, x.ndim - 2
    options = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    dp.tilelang.conv(constants(x), constants(w), **options, channels=channels)  # raises errors
    if channels == "first":
        x, w = dp.moveaxis(x, 1, -1), dp.permute_dims(w, (*range(2, w.ndim), 1, 0))
    steps = windows.numbers_of("conv", "strides", strides, count)
    apart = windows.numbers_of("conv", "dilation", dilation, count)
    *sizes, depth, filters = w.shape
    reach = [d * (k - 1) + 1 for d, k in zip(apart, sizes, strict=True)]
    borders = windows.borders_of("conv", padding, x.shape[1:-1], reach, steps)
    x = dp.pad(x, ((0, 0), *[tuple(map(int, pair)) for pair in borders], (0, 0)))
    counts = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], reach, steps, strict=True)]
    parts = []
    for at in np.ndindex(*sizes):
        starts = [d * k for d, k in zip(apart, at, strict=True)]
        inside = [
            slice(start, start + step * (n - 1) + 1, step)
            for start, step, n in zip(starts, steps, counts, strict=True)
        ]
        key = (slice(None), *inside)
        parts.append(x[key])
    outer = filters // groups
    made = []
    for group in range(groups):
        own = slice(group * depth, (group + 1) * depth)
        columns = dp.concatenate([part[..., own] for part in parts], axis=-1)
        weights = dp.reshape(w[..., group * outer : (group + 1) * outer], (-1, outer))
        made.append(columns @ weights)
    y = made[0] if groups == 1 else dp.concatenate(made, axis=-1)
    return dp.moveaxis(y, -1, 1) if channels == "first" else y


def _enter() -> None:
    COMPOSED_OF_TILE["conv"] = _tile_conv
    linalg, fft = dp.linalg, dp.fft
    register("matmul", Bilinear("matmul", dp.matmul, _of_matmul))
    ROWS_BY_NAME["convolve"] = Bilinear("convolve", lambda a, b: dp.convolve(a, b), _of_convolve)
    pulled = "solve solve_triangular inv det slogdet cholesky eigh svd qr lu eigvals eig expm"
    for name in pulled.split():
        rule = globals()[f"_pull_{name}"]
        register(f"linalg.{name}", Pulled(f"linalg.{name}", getattr(linalg, name), rule))
    linear: dict[str, Any] = {
        "fft": _of_fft("ifft"),
        "ifft": _of_fft("fft"),
        "rfft": _of_rfft,
        "irfft": _of_irfft,
    }
    for name, transposed in linear.items():
        register(f"fft.{name}", Linear(f"fft.{name}", getattr(fft, name), transposed))
    compose(
        globals(),
        "einsum dot convolve correlate linalg.pinv linalg.lstsq linalg.cho_solve fft.hfft "
        "fft.ihfft",
    )
    composed: dict[str, Any] = {
        "linalg.eigvalsh": lambda a, *args, **options: linalg.eigh(a, *args, **options)[0],
        "linalg.svdvals": lambda a: linalg.svd(a, full_matrices=False)[1],
        "linalg.cho_factor": lambda a, lower=False, **_: (
            linalg.cholesky(a, upper=not lower),
            lower,
        ),
        **{f"fft.{kind}2": _over_axes(kind, (-2, -1)) for kind in ("fft", "ifft", "rfft", "irfft")},
        **{f"fft.{kind}n": _over_axes(kind, None) for kind in ("fft", "ifft", "rfft", "irfft")},
    }
    COMPOSED.update({function_of(name): function for name, function in composed.items()})


_enter()
