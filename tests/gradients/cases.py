"""Calls of all functions that have a derivative, as text: the function and its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import dparray as dp

_random = np.random.default_rng(0)
_square = _random.normal(size=(4, 4)) + 4 * np.eye(4)
_positive = _square @ _square.T + np.eye(4)

#: The arrays, by the letters of a case.
ARRAYS = {
    "P": _random.uniform(0.3, 0.9, (3, 4)),
    "Q": _random.uniform(1.2, 2.5, (3, 4)),
    "S": _random.normal(size=(3, 4)),
    "V": _random.normal(size=4),
    "W": _random.normal(size=5),
    "A": _square,
    "D": _positive,
    "L": np.linalg.cholesky(_positive),
    "B": _random.normal(size=(4, 2)),
    "T": _random.normal(size=(2, 3, 4)),
    "U": _random.normal(size=(5, 3)),
    "K": np.array([0.3, -1.0, 2.0]),
    "Z": np.array([0.0, 2.0, 3.0, 1.5]),
    "N": np.array([0.2, 1.7, 3.4]),
    "G": np.array([[0.5, np.nan, 2.0], [1.5, 0.25, np.nan]]),
    "X": np.arange(5.0),
    "F": _random.normal(size=(5, 1, 4, 2)),
}
INDICES = np.array([2, 0, 2, 1])
PLACES = np.array([[0, 3], [1, 1], [2, 0]])

_ONE = {
    "S": "exp exp2 expm1 sin cos arctan sinh cosh tanh arcsinh square abs negative positive floor "
    "ceil trunc round sign deg2rad rad2deg degrees radians fabs sinc nan_to_num conj real fix rint "
    "spacing imag angle",
    "Q": "log log2 log10 sqrt cbrt reciprocal rsqrt arccosh",
    "P": "log1p tan arcsin arccos arctanh i0",
}
_TWO = (
    "add subtract multiply divide remainder fmod power float_power arctan2 hypot copysign "
    "logaddexp logaddexp2 maximum minimum fmax fmin floor_divide nextafter heaviside"
)
_SPECIAL_ONE = {
    "P": "erf erfc erfinv erfcinv erfcx ndtr ndtri log_ndtr gamma gammaln loggamma rgamma gammasgn "
    "digamma expit log_expit logit entr sinc softplus exprel exp10 i0 i0e i1 i1e j0 j1 k0 k0e k1 "
    "k1e y0 y1",
}
_SPECIAL_TWO = "xlogy xlog1py rel_entr kl_div beta betaln binom boxcox boxcox1p huber pseudo_huber"

#: Groups of cases: a call, and the letters of the arrays `x`, `y` and `z`.
GROUPS: dict[str, list[tuple[str, str]]] = {
    "one operand": [(f"{name}(x)", a) for a, names in _ONE.items() for name in names.split()],
    "two operands": [
        *[(f"{name}(x, y)", a) for name in _TWO.split() for a in ("QP", "QV") if name != "power"],
        *[(f"{name}(x, 1.7) + {name}(0.6, x)", "Q") for name in _TWO.split()[:15]],
        *[
            ("power(abs(x), y)", "QV"),
            ("power(x, y)", "QP"),
            ("ldexp(x, asarray([1, 2, 0, 3]))", "S"),
        ],
        ("x ** 3 + x ** 0.5 + 2.0 ** x + x ** 2 + x ** -1 + x ** 1", "Q"),
        ("-x + +x * 2 - abs(x) / (1 - x) + x // 0.3 + x % 0.7", "S"),
        *[("where(x > 1.7, x * y, y)", "QP"), ("where(asarray(True), x, 0.0)", "S")],
        *[("clip(x, -0.5, 0.5)", "S"), ("x.clip(-0.5)", "S"), ("clip(x, y, 2.0)", "QP")],
        ("select([x > 1, x > 0], [x * x, 3 * x], 0)", "S"),
        ("piecewise(x, [x < 0, x > 1], [lambda v: v * v, lambda v: 3 * v, 1.0])", "S"),
        *[("divmod(x, y)[1] + divmod(x, y)[0]", "QP"), ("modf(x)[0]", "Q"), ("frexp(x)[0]", "Q")],
        *[("add(x, y, where=x > 1.8)", "QP"), ("multiply(x, y, dtype='float64')", "QP")],
        ("choose(asarray([0, 1, 1, 0]), [x, y])", "VV"),
    ],
    "special functions": [
        *[(f"special.{n}(x)", a) for a, names in _SPECIAL_ONE.items() for n in names.split()],
        *[(f"special.{name}(x, y)", "QP") for name in _SPECIAL_TWO.split()],
        *[(f"special.{n}(1.3, x)", "Q") for n in ("gammainc", "gammaincc", "stdtr", "chdtr")],
        *[(f"special.{n}(1.3, x)", "P") for n in ("gammaincinv", "gammainccinv", "stdtrit")],
        *[(f"special.{n}(2.0, x)", "P") for n in ("chdtrc", "chdtri", "pdtr", "pdtrc", "pdtri")],
        *[(f"special.{n}(1.3, 2.2, x)", "P") for n in ("betainc", "betaincc", "betaincinv")],
        *[(f"special.{n}(1.3, 2.2, x)", "P") for n in ("betainccinv", "fdtr", "fdtrc", "fdtri")],
        *[(f"special.{n}(2.0, 5.0, x)", "P") for n in ("bdtr", "bdtrc", "bdtri")],
        *[(f"special.{n}(2.0, 5.0, x)", "P") for n in ("nbdtr", "nbdtrc", "nbdtri")],
        *[(f"special.{n}(x, 1.4, y)", "QP") for n in ("gdtr", "gdtrc", "gdtrix")],
        *[("special.inv_boxcox(x, y)", "QP"), ("special.inv_boxcox1p(x, y)", "QP")],
        *[("special.polygamma(2, x)", "Q"), ("special.zeta(2.5, x)", "Q"), ("special.psi(x)", "Q")],
        *[("special.softmax(x, axis=1)", "S"), ("special.log_softmax(x, axis=0)", "S")],
        *[("special.logsumexp(x, axis=1)", "S"), ("logsumexp(x, axis=0)", "S")],
        *[("special.boxcox(x, 0.0)", "Q"), ("special.exprel(x)", "Z"), ("special.j1(x)", "Z")],
        *[("special.i1(x)", "Z"), ("sinc(x)", "Z"), ("special.huber(0.5, x)", "S")],
    ],
    "reductions": [
        *[
            (f"{name}{call}", "Q")
            for name in [
                "sum",
                "mean",
                "prod",
                "max",
                "min",
                "amax",
                "amin",
                "var",
                "std",
                "ptp",
                "nansum",
                "nanmean",
                "nanmax",
                "nanmin",
                "nanprod",
                "nanvar",
                "nanstd",
                "median",
                "nanmedian",
            ]
            if name != "nanmedian"
            for call in ("(x)", "(x, axis=1)", "(x, axis=0, keepdims=True)")
        ],
        *[("prod(x)", "Z"), ("prod(x, axis=(0, 2))", "T"), ("sum(x, axis=(0, 2))", "T")],
        *[("std(x, axis=0, ddof=1)", "Q"), ("var(x, correction=1)", "Q"), ("mean(x, (0, 1))", "T")],
        *[
            (f"{n}(x, axis=1)", "G")
            for n in ["nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd"]
        ],
        *[("sum(x, where=x > 1.8)", "Q"), ("mean(x, axis=1, where=x > 1.5)", "Q")],
        *[
            ("max(x, axis=0, where=x > 1.8, initial=1.0)", "Q"),
            ("sum(x, axis=1, initial=2.0)", "Q"),
        ],
        *[("x.sum(axis=0).mean()", "S"), ("x.var(axis=1)", "S"), ("quantile(x, 0.3)", "W")],
        *[("quantile(x, [0.3, 0.9], axis=1)", "S"), ("percentile(x, 30.0, axis=0)", "S")],
        *[("average(x, axis=0, weights=y)", "QP"), ("average(x, axis=1)", "S")],
        *[("cumsum(x, axis=1)", "S"), ("cumsum(x)", "S"), ("cumprod(x, axis=0)", "Q")],
        *[("cumprod(x)", "Z"), ("cumulative_sum(x, axis=1, include_initial=True)", "S")],
        *[("cumulative_prod(x, axis=0)", "Q"), ("cumulative_logsumexp(x, axis=1)", "S")],
        *[("nancumsum(x, axis=1)", "G"), ("nancumprod(x, axis=1)", "G"), ("unwrap(4 * x)", "S")],
        *[("trapezoid(x, dx=0.3)", "S"), ("trapezoid(x, y)", "SV"), ("cov(x)", "S")],
        *[
            ("corrcoef(x)", "S"),
            ("cov(x, y)", "VV"),
            ("diff(x, axis=1)", "S"),
            ("diff(x, n=2)", "S"),
        ],
        *[
            ("diff(x, prepend=y[:, :1], append=0.5)", "SQ"),
            ("ediff1d(x, y, 2.0)", "SV"),
            ("cov(x, ddof=0, aweights=asarray([1.0, 2.0, 0.5, 1.0]))", "S"),
            ("average(x, weights=y, axis=1, returned=True)[1]", "QP"),
            ("trapezoid(x, y, axis=0)", "SK"),
            ("nanvar(x, axis=1, correction=1)", "Q"),
        ],
        *[("ediff1d(x)", "S"), ("gradient(x, 0.5)", "W"), ("gradient(x)[1]", "S")],
        *[("sort(x, axis=1)", "S"), ("sort(x, axis=None)", "S"), ("partition(x, 1)", "S")],
        *[("sort(x, descending=True)", "S"), ("top_k(x, 2)[0]", "S"), ("interp(y, z, x)", "WNX")],
        *[("interp(x, asarray([0.0, 1.0, 2.5]), y, left=0.5)", "NK"), ("polyval(x, y)", "VW")],
        *[
            ("polyfit(x, y, 2)", "XW"),
            ("polyder(x)", "W"),
            ("polymul(x, y)", "VW"),
            ("polyadd(x, y) * polysub(y, x)", "VW"),
            ("polyint(x)", "V"),
            ("vander(x, 3)", "V"),
        ],
    ],
    "shapes": [
        *[("reshape(x, (2, 6))", "S"), ("ravel(x)", "S"), ("transpose(x)", "S"), ("x.T", "S")],
        *[
            ("x.reshape(4, 3).T.flatten()", "S"),
            ("expand_dims(x, 1)", "S"),
            ("flip(x, axis=1)", "S"),
        ],
        *[("roll(x, 2, axis=1)", "S"), ("roll(x, 3)", "S"), ("repeat(x, 2, axis=0)", "S")],
        *[("repeat(x, 3)", "S"), ("repeat(x, asarray([1, 0, 2, 1]), axis=1)", "S")],
        *[("tile(x, (2, 1, 3))", "S"), ("tril(x)", "S"), ("triu(x, 1)", "S"), ("diagonal(x)", "S")],
        *[("diagonal(x, 1)", "S"), ("trace(x)", "S"), ("linalg.trace(x)", "T"), ("diag(x)", "V")],
        *[("diag(x, 1)", "S"), ("diagflat(x, -1)", "V"), ("linalg.diagonal(x)", "T")],
        *[("broadcast_to(x, (5, 3, 4))", "S"), ("concatenate([x, x * x], axis=1)", "S")],
        *[("concatenate([x, y], axis=None)", "SV"), ("stack([x, x * x], axis=1)", "S")],
        *[("vstack([x, y])", "SV"), ("hstack([x, x])", "S"), ("dstack([x, 2 * x])", "S")],
        *[("column_stack([x[0], x[1]])", "S"), ("block([[x, x * x], [2 * x, x]])", "S")],
        *[
            ("pad(x, ((1, 2), (0, 1)))", "S"),
            ("pad(x, 1, mode='edge')", "S"),
            ("x.ravel()[3:]", "S"),
        ],
        *[("pad(x, 2, mode='reflect')", "S"), ("pad(x, 1, constant_values=3.0)", "S")],
        *[
            ("split(x, 2, axis=1)[1]", "S"),
            ("array_split(x, 3, axis=1)[0]", "S"),
            ("hsplit(x, 2)[1]", "S"),
        ],
        *[
            ("vsplit(x, 3)[1]", "S"),
            ("dsplit(x, 2)[1]", "T"),
            ("unstack(x)[1]", "S"),
            ("rot90(x)", "S"),
        ],
        *[("moveaxis(x, 0, 1)", "T"), ("swapaxes(x, 0, 2)", "T"), ("rollaxis(x, 2)", "T")],
        *[("permute_dims(x, (2, 0, 1))", "T"), ("matrix_transpose(x)", "T"), ("x.mT", "T")],
        *[
            ("squeeze(x[None])", "S"),
            ("atleast_1d(x)", "S"),
            ("atleast_2d(x)", "V"),
            ("atleast_3d(x)", "S"),
        ],
        *[("append(x, x)", "S"), ("meshgrid(x, y)[0] * meshgrid(x, y)[1]", "VW"), ("copy(x)", "S")],
        *[
            ("broadcast_arrays(x, y)[1]", "SV"),
            ("x.astype('float64') * 2", "S"),
            ("fliplr(x)", "S"),
        ],
        *[
            ("asarray([x[0], 1.0, x[1]])", "V"),
            ("array([[x[0], x[1]], [x[2], 2.0]])", "V"),
            ("flipud(x)", "S"),
        ],
        *[("asarray(x)", "S"), ("full((2, 3), x[1])", "V"), ("full_like(x, y[1])", "SV")],
        *[("linspace(x[0], x[1], 5)", "V"), ("resize(x, (2, 8))", "S"), ("zeros_like(x) + x", "S")],
        *[
            ("imag(x * (1 + 2j))", "S"),
            ("angle(x + 1j * x * x)", "Q"),
            ("ascontiguousarray(x.T)", "S"),
        ],
    ],
    "indexing": [
        *[("x[1]", "S"), ("x[1:, ::2]", "S"), ("x[::-1, None, 1]", "S"), ("x[:, I]", "S")],
        *[
            ("x[I, I]", "S"),
            ("x[..., 0]", "S"),
            ("x[x > 0]", "S"),
            ("x[1, 2]", "S"),
            ("x[-1:, ...]", "S"),
        ],
        *[("take(x, I, axis=1)", "S"), ("take(x, I)", "S"), ("take_along_axis(x, K, axis=1)", "S")],
        *[
            ("x.take(I, axis=0)", "S"),
            ("compress(x[:, 0] > 0, x, axis=0)", "S"),
            ("extract(x > 0, x)", "S"),
        ],
        *[
            ("delete(x, 1, axis=1)", "S"),
            ("delete(x, [0, 2])", "V"),
            ("insert(x, 1, y, axis=0)", "SV"),
        ],
        *[
            ("insert(x, [1, 3], 2.0)", "V"),
            ("insert(x, 1, 5.0, axis=1)", "S"),
            ("sum(asarray([v * v for v in x]))", "V"),
        ],
    ],
    "products": [
        *[("x @ y", a) for a in ("AB", "AV", "VA", "VV", "TB", "TV", "TF")],
        *[("matmul(x, y)", "NT"), ("dot(x, y)", "AB"), ("x.dot(y)", "AB"), ("vdot(x, y)", "VV")],
        *[("dot(x, y)", "AF"), ("inner(x, y)", "AA"), ("outer(x, y)", "VW"), ("kron(x, y)", "AB")],
        *[
            ("tensordot(x, y, axes=([2, 1], [1, 0]))", "TP"),
            ("vecdot(x, y)", "SS"),
            ("cross(x, y + 1)", "UU"),
            ("cross(x[:2], y.T[:, :2], axisb=0, axisc=0)", "UU"),
        ],
        *[("matvec(x, y)", "TV"), ("vecmat(x, y)", "VA"), ("linalg.multi_dot([x, x, y])", "AB")],
        *[
            (f"einsum('{e}', x, y)", "AA")
            for e in ("ij,jk->ik", "ij,jk->ki", "ij,ij->", "ij,kj", "ij,jk")
        ],
        *[
            ("einsum('ij,j->i', x, y)", "AV"),
            ("einsum('bij,bkj->bik', x, y)", "TT"),
            ("einsum('ij->j', x)", "A"),
        ],
        *[("einsum('...j,jk->...k', x, y)", "TB"), ("einsum('ij,jk,k->i', x, y, z)", "AAV")],
        *[
            (f"convolve(x, y, '{mode}')", a)
            for mode in ("full", "same", "valid")
            for a in ("WK", "KW")
        ],
        *[(f"correlate(x, y, '{mode}')", "WK") for mode in ("full", "same", "valid")],
    ],
    "linear algebra": [
        *[("linalg.solve(x, y)", "AB"), ("linalg.solve(x, y)", "AV"), ("linalg.inv(x)", "A")],
        *[("linalg.det(x)", "A"), ("linalg.det(x[:2, :2])", "A"), ("linalg.det(x[:3, :3])", "A")],
        *[
            ("linalg.slogdet(x)[1]", "A"),
            ("linalg.cholesky((x + x.T) / 2)", "D"),
            ("linalg.expm(x / 4)", "A"),
        ],
        *[
            ("linalg.cholesky((x + x.T) / 2, upper=True)", "D"),
            ("linalg.eigh((x + x.T) / 2)[0]", "D"),
        ],
        *[("abs(linalg.eigh((x + x.T) / 2)[1])", "D"), ("linalg.eigvalsh((x + x.T) / 2)", "D")],
        *[("linalg.svdvals(x)", "U"), ("abs(linalg.svd(x, full_matrices=False)[0])", "U")],
        *[("abs(linalg.svd(x.T, full_matrices=False)[2])", "U"), ("abs(linalg.qr(x)[0])", "U")],
        *[
            ("abs(linalg.qr(x)[1])", "U"),
            ("linalg.lu(x)[1] + linalg.lu(x)[2]", "A"),
            ("linalg.norm(x)", "A"),
        ],
        *[(f"linalg.norm(x, ord={ord})", "V") for ord in ("1", "3", "inf", "-inf", "2")],
        *[(f"linalg.norm(x, ord={ord})", "A") for ord in ("1", "-1", "inf", "'nuc'", "2", "'fro'")],
        *[("linalg.norm(x, axis=1)", "A"), ("linalg.norm(x, axis=(1, 2), keepdims=True)", "T")],
        *[("linalg.vector_norm(x)", "S"), ("linalg.matrix_norm(x)", "T"), ("linalg.pinv(x)", "U")],
        *[
            ("linalg.matrix_power(x, 3)", "A"),
            ("linalg.matrix_power(x, -2)", "A"),
            ("linalg.cond(x)", "A"),
        ],
        *[("linalg.solve_triangular(x, y, lower=True)", "LB"), ("linalg.lstsq(x, y)[0]", "UW")],
        *[
            ("linalg.tensorinv(x.reshape(2, 2, 2, 2))", "A"),
            ("linalg.tensorsolve(x.reshape(2, 2, 4), y.reshape(2, 2))", "AV"),
        ],
        *[
            ("linalg.cho_solve(linalg.cho_factor((x + x.T) / 2), y)", "DB"),
            ("abs(linalg.eigvals(x))", "A"),
        ],
        ("abs(linalg.eig(x)[1])", "A"),
    ],
    "transforms": [
        *[(f"real(fft.{n}(x)) * imag(fft.{n}(x))", "W") for n in ("fft", "ifft")],
        *[(f"abs(fft.{n}(x, {size}))", "W") for n in ("fft", "ifft", "rfft") for size in (8, 3)],
        *[("abs(fft.rfft(x))", "W"), ("imag(fft.rfft(x, norm='ortho') ** 2)", "V")],
        *[("fft.irfft(fft.rfft(x) * (1 + 2j), 4)", "V"), ("fft.irfft(fft.rfft(x) ** 2, 5)", "W")],
        *[
            (f"abs(fft.{n}(x))", a)
            for n in ("fft2", "ifft2", "fftn", "rfft2", "rfftn")
            for a in "ST"
        ],
        *[("real(fft.ifftn(x) ** 2)", "S"), ("fft.irfft2(fft.rfft2(x) * (1 + 1j))", "S")],
        *[
            ("fft.irfftn(fft.rfftn(x) ** 2, (3, 4))", "S"),
            ("fft.fftshift(x) * fft.ifftshift(y)", "SS"),
        ],
        *[
            ("fft.hfft(x + 1j * y)", "WW"),
            ("abs(fft.ihfft(x))", "W"),
            ("abs(fft.fftn(x, (4, 2)))", "S"),
        ],
    ],
    "complex numbers": [
        *[
            ("abs(exp(1j * x) * (x + 2j) ** 2 / (x - 1j))", "S"),
            ("abs((x * (1 + 1j)) @ (x * 2j + 1))", "A"),
        ],
        *[("real(sqrt(x + 1j) * conj(log(x + 2j)))", "Q"), ("real(sign(x + 1j))", "S")],
        *[
            ("var(x + 1j * x * x)", "S"),
            ("abs(prod(x + 1j))", "V"),
            ("abs(sum(x * 1j + x**2, axis=0))", "S"),
        ],
        *[
            ("linalg.norm(x + 1j * y)", "SS"),
            ("abs(linalg.inv(x + 1j))", "A"),
            ("abs(cumprod(x + 1j))", "V"),
        ],
        ("abs(linalg.solve(x + 2j * y, x[:, 0] + 1j))", "AA"),
    ],
}

#: Calls whose second derivatives are not compared: they are zero, undefined or too rough.
FIRST_ONLY = (
    *("special.i0e", "special.i1e", "spacing", "nextafter", "abs(linalg.eig(", "remainder(x, y)"),
    "fmod(x, y)",
)

_NAMES: dict[str, Any] = {name: getattr(dp, name) for name in dp.__all__ if name != "iterable"}
_NAMES |= {
    name: getattr(dp, name) for name in ("abs", "max", "min", "sum", "round", "pow", "divmod")
}
_NAMES |= {name: getattr(dp, name) for name in ("linalg", "fft", "special")}


def function(text: str) -> Any:
    """Return the function of a case."""
    return eval(
        f"lambda x, y=None, z=None: {text}",
        {**_NAMES, "I": dp.asarray(INDICES), "K": dp.asarray(PLACES)},
    )
