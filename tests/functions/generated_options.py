"""Recipes of generated calls with rarely used options.

They include functions that return no arrays, or arrays with more than one correct form; for these
the properties common to all correct forms are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

#: Recipes used in addition to `generated_calls.RECIPES`.
OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("std", "var", "nanstd", "nanvar"),
        (
            "x:biufc::full axis=axes keepdims=flag correction=int:0:2",
            "!x:biuf::full axis==keptaxes keepdims=flag mean==meanof",
        ),
    ),
    **dict.fromkeys(
        ("quantile", "nanquantile"),
        (
            "!x:if:1:full q weights==weights method==one:inverted_cdf",
            "!x:iuf::full q method=one:hazen:weibull:normal_unbiased:averaged_inverted_cdf:"
            "closest_observation:interpolated_inverted_cdf axis=axes",
        ),
    ),
    **dict.fromkeys(
        ("percentile", "nanpercentile"),
        ("!x:if:1:full q:100 weights==weights method==one:inverted_cdf",),
    ),
    **dict.fromkeys(
        ("nansum", "nanprod", "nanmax", "nanmin"),
        ("x:if axis=axes initial=int:-3:3 where=masks keepdims=flag",),
    ),
    "clip": ("x:iuf min=scalar:iuf max=scalar:iuf", "x:iuf like:iuf like:iuf order=order"),
    "compress": ("conditionfor kept axis==lastaxis",),
    "sort": ("!x axis=axisn stable=flag",),
    "argsort": ("!x axis=axisn stable==one:True",),
    "partition": ("!x:biuf::full kth axis==int:-1:-1",),
    "argpartition": ("!x:biuf::full kth axis==int:-1:-1",),
    "searchsorted": ("!x:iuf:1:full x:iuf sorter==sorterof side=one:left:right",),
    "bincount": ("!x:u:1:plain weights==same:if minlength=int:0:12",),
    "histogram": ("!x:iuf::full:plain bins=bins weights==weights range=range density=flag",),
    "histogram_bin_edges": (
        "!singles bins==one:auto:sturges:rice:sqrt:fd:scott:doane:stone range=range",
        "!x:iuf:1:full:plain bins=bins weights==weights",
    ),
    "histogram2d": ("!points same:if bins=int:1:5 density=flag weights=weights range=ranges:2",),
    "histogramdd": (
        "!pairs bins=int:1:4 density=flag weights=weights",
        "!points bins=int:1:4 range=ranges:1",
    ),
    "unique": ("!x:iuf return_index=flag sorted==one:True",),
    **dict.fromkeys(
        ("setxor1d", "setdiff1d", "intersect1d"), ("!uniq:iuf uniq:iuf assume_unique==flag",)
    ),
    "isin": ("!uniq:iu uniq:iu assume_unique==flag invert=flag kind=one:None:sort:table",),
    **dict.fromkeys(("asfortranarray", "ascontiguousarray"), ("!x dtype=dtype",)),
    "require": ("!x dtype=dtype requirements=one:F:C:A:W",),
    **dict.fromkeys(("asanyarray", "asarray_chkfinite"), ("!x dtype=dtype order=order",)),
    "rollaxis": ("!x axis start=int:-2:3",),
    "rot90": ("!x::3 k=int:-5:5 axes==axesof:2",),
    "roll": ("!x::3 int:-4:4 axis=axes", "!x::2:full axesof:2 axis==axesof:2"),
    "moveaxis": ("!x::4 axesof:2 axesof:2",),
    "expand_dims": ("!x::2 axesof:2",),
    "stack": ("(same) axis=axis dtype=dtype casting=one:unsafe:same_kind:safe",),
    **dict.fromkeys(
        ("hstack", "vstack"), ("!(same) dtype=dtype casting=one:unsafe:same_kind:safe",)
    ),
    "trim_zeros": ("!x::2 trim=one:fb:f:b axis=axes",),
    "repeat": ("!x::1 counts", "!x::2 counts axis==int:-1:-1"),
    "insert": ("!x deleted inserted lastaxis", "!x::1:full places vals"),
    "ediff1d": ("!x:iufc to_begin=int:-2:2 to_end=int:-2:2",),
    "diff": ("!x:iuf:1 prepend=part append=part n=int:1:2",),
    "trapezoid": ("!x:iufc::full x==along", "!x:iufc:2:full x==same:f axis=axis"),
    "gradient": ("!x:iufc:1:full steps edge_order=int:1:2", "!x:iuf:2:full float float"),
    "interp": ("!x:if sortedx fps period==int:1:9",),
    "matmul": (
        "x::2:full:plain matrix dtype=dtype casting=one:unsafe:same_kind order=order:CFAK",
        "threefold squares axes==axespairs",
    ),
    "vecdot": (
        "!x:::full:plain rows axis==int:-1:-1 keepdims=flag",
        "x:::full:plain rows dtype=dtype casting=one:unsafe:same_kind",
        "!threefold squares axes==axesvecdot",
    ),
    "matvec": (
        "x::2:full:plain rowsv dtype=dtype casting=one:unsafe:same_kind",
        "!threefold squares axes==axesmatvec",
    ),
    "vecmat": (
        "vectorrows x2 dtype=dtype casting=one:unsafe:same_kind",
        "!threefold squares axes==axesvecmat",
    ),
    "cross": (
        "!vectors:0 vectors:0 axis==int:0:0",
        "!vectors:0 vectors:1 axisa==int:0:0 axisb==int:1:1 axisc=int:0:1",
    ),
    "tensordot": (
        "!x::3:full:plain squares axes==int:0:0",
        "!x::3:full:plain squares axes==int:3:3",
        "!threefold squares axes=pairsofaxes",
    ),
    "trace": ("x::3 offset=int:-1:1 axis1=int:0:1 axis2==int:2:2",),
    "diagonal": ("!x::3 offset=int:-1:1 axis1=int:0:1 axis2==int:2:2",),
    "fill_diagonal": ("!x::2:full part wrap=flag",),
    "cov": (
        "!x:f:2:full:plain bias=flag fweights=counts aweights=chances dtype=dtype:f",
        "!x:iufc:2:full:plain y==squares rowvar=flag",
        "!x:iuf:1:full:plain y==squares ddof=int:0:2",
    ),
    "corrcoef": ("!x:iufc:2:full:plain y==squares rowvar=flag dtype=dtype:fc",),
    "average": (
        "!x:iufc:2:full weights==along axis==int:-1:-1 keepdims=flag returned=flag",
        "!x:iufc::full weights==weights axis=axes keepdims=flag returned=flag",
    ),
    "packbits": ("!x:biu axis=axisn bitorder=one:big:little",),
    "unpackbits": ("!somebytes axis=axisn bitorder=one:big:little count=int:-3:20",),
    "polyint": ("!x:ifc:1:full m==int:1:1 k==int:-2:2",),
    "poly": ("!x:if:1:full:plain", "!square"),
    "polydiv": ("!polynomial polynomial",),
    "polyfit": (
        "!x:f:1:full:plain deg==int:0:2 w=along:f rcond=number:1e-9 full=flag",
        "!x:f:1:full:plain deg==int:0:1 cov=one:True:unscaled",
    ),
    "roots": ("!polynomial",),
    "ones_like": ("!x dtype=dtype order=order shape=shape",),
    "full_like": ("!x scalar dtype=dtype:c order=order shape=shape",),
    **dict.fromkeys(("empty",), ("!shape dtype=dtype order=order:CF",)),
    **dict.fromkeys(("empty_like",), ("!x dtype=dtype order=order shape=shape",)),
    "linspace": ("!scalar:if scalar:if num=int:0:9 endpoint=flag retstep==one:True",),
    "logspace": (
        "!int:-2:2 int:-2:3 num=int:0:9 endpoint=flag dtype=dtype:if",
        "!x:if:1:plain int:0:2 num=int:1:5 axis=int:-1:0",
    ),
    "geomspace": (
        "!int:1:9 int:1:9 num=int:0:9 endpoint=flag dtype=dtype:f",
        "!x:u:1:full int:1:9 num=int:1:5 axis=int:-1:0",
    ),
    "indices": ("!shape23 dtype=dtype:iuf sparse=flag",),
    **dict.fromkeys(("tril_indices", "triu_indices"), ("!int:0:5 k=int:-2:2 m=int:0:5",)),
    "diag_indices": ("!int:0:5 ndim=int:1:3",),
    **dict.fromkeys(
        ("tril_indices_from", "triu_indices_from"), ("!x::2 k=int:-2:2", "!x k=int:-2:2")
    ),
    "diag_indices_from": ("!x", "!squarex"),
    "mask_indices": ("!int:0:6 k=int:-2:2",),
    "ix_": ("!*vectorslist",),
    "size": ("!x axis=axis",),
    "piecewise": ("!x:iuf conditions functions",),
    "select": ("!masksx choices2 default=scalar:i",),
    "apply_along_axis": ("!x:biuf::full axis",),
    "apply_over_axes": ("!x:iuf::full axes",),
    "nan_to_num": ("!x:fc nan=scalar:i posinf=scalar:i neginf=scalar:i",),
    "einsum": (
        "!mat23 pairof:0:1 pairof:1:0",
        "!text:ij,jk,kl->il mat:2:3:iufc mat:3:4:iufc mat:4:2:iufc "
        "optimize=one:True:False:greedy:optimal",
        "!text:ij,kj->ik mat23 mat23 dtype=dtype:fc",
        "!text:i,j vec3 vec3",
    ),
    "fromfunction": ("!sizes dtype=dtype:if",),
    "fromiter": ("!numbers dtype==dtype:f count=int:-1:3",),
    "frombuffer": (
        "!bytestring:int32 dtype==one:int32 offset=int:0:1 count=int:-1:3",
        "!bytestring:float64 dtype==one:float64:uint8:complex128",
    ),
    "fromstring": ("!text2 sep==one:, dtype=dtype:if count=int:-1:0",),
    "broadcast_shapes": ("!dims dims", "!dims dims int:1:3"),
    "can_cast": ("!dtype dtype casting=one:no:equiv:safe:same_kind:unsafe",),
    "promote_types": ("!dtype dtype",),
    "result_type": ("!dtypes dtypes", "!dtypes scalar dtypes"),
    "min_scalar_type": ("!x", "!numpyscalar"),
    "common_type": ("!x:iufc same:fc",),
    "isdtype": ("!dtypeobject kindname",),
    "issubdtype": ("!dtype dtype",),
    "isscalar": ("!scalar",),
    "iterable": ("!scalar", "!x", "!numbers"),
    "typename": ("!one:d:f:i:b:D",),
    "base_repr": ("!int:-40:40 base=int:2:16 padding=int:0:3",),
    "binary_repr": ("!int:-40:40 width=int:0:9",),
    "format_float_positional": (
        "!float precision=int:0:5 unique=flag fractional=flag trim=one:k:.:0:- sign=flag "
        "pad_left=int:0:5 pad_right=int:0:5 min_digits=int:0:3",
    ),
    "format_float_scientific": (
        "!float precision=int:0:5 unique=flag trim=one:k:.:0:- sign=flag pad_left=int:0:5 "
        "exp_digits=int:1:4 min_digits=int:0:3",
    ),
    "array2string": (
        "!x separator=one:,:;:_ prefix=one:ab:x suffix=one:c:d "
        "floatmode=one:fixed:unique:maxprec:maxprec_equal",
        "!x precision=int:0:5 suppress_small=flag threshold=int:0:30 max_line_width=int:20:90 "
        "edgeitems=int:1:4 sign=one:+:-",
    ),
    "array_str": ("!x precision=int:0:5 suppress_small=flag max_line_width=int:20:90",),
    **dict.fromkeys(("may_share_memory", "shares_memory"), ("!x like",)),
    "linalg.norm": (
        "!x:iufc:1:full:plain ord==number:0:1:2:3:-1:-2:inf:-inf",
        "!x:fc:2:full:plain ord==one:fro:nuc:inf:-inf keepdims=flag",
        "!x:fc:2:full:plain ord==number:1:2:-1:-2 keepdims=flag",
        "!x:fc:3:full:plain axis==axesof:2 ord=one:fro:nuc:inf keepdims=flag",
    ),
    "linalg.vector_norm": ("!x:fc:2:full:plain axis=axes ord==number:0:inf:-inf:0.5:-1",),
    "linalg.matrix_norm": (
        "!x:fc:3:full:plain ord==one:fro:nuc:inf:-inf",
        "!x:fc:3:full:plain ord==number:1:2:-1:-2",
    ),
    "linalg.pinv": (
        "!hermitian hermitian==one:True",
        "!tall rcond=number:1e-6",
        "!tall rtol=number:1e-6",
    ),
    "linalg.cholesky": ("!hermitian upper=flag",),
    "linalg.eigvalsh": ("!hermitian UPLO=one:L:U:l:u",),
    "linalg.eigh": ("!hermitian UPLO=one:L:U",),
    "linalg.eig": ("!square",),
    "linalg.svd": ("!tall full_matrices=flag compute_uv=flag", "!hermitian hermitian==one:True"),
    "linalg.svdvals": ("!tall",),
    "linalg.qr": ("!tall mode=one:reduced:complete:r",),
    "linalg.lstsq": ("!tallone lstsqrhs rcond=number:1e-9:-1",),
    "linalg.cond": ("!square p==number:1:2:-1:-2:inf:-inf", "!square p==one:fro:nuc:None"),
    "linalg.matrix_rank": (
        "!tall tol=number:0.5:1e-3",
        "!tall rtol==number:0.5:1e-3",
        "!hermitian hermitian==one:True",
    ),
    "linalg.trace": ("!x::3 offset=int:-1:1 dtype=sumdtype",),
    "linalg.cross": ("!vectors:2 vectors:2", "!vectors:0 vectors:0 axis==int:0:0"),
    "linalg.matmul": ("!x::2:full:plain matrix",),
    "linalg.matrix_transpose": ("!x::3",),
    "linalg.outer": ("!x::1:plain vector",),
    "linalg.tensordot": ("!x::2:full:plain matrix2 axes==int:1:1",),
    "linalg.vecdot": ("!x:::full:plain rows axis=int:-1:-1",),
    "linalg.tensorinv": ("!tensors ind==lastaxis",),
    "linalg.tensorsolve": ("!tensors tensorrhs", "!turnedtensors kept axes==lastaxis"),
    **dict.fromkeys(
        ("fft.fftn", "fft.ifftn", "fft.irfftn", "fft.fft2", "fft.ifft2", "fft.irfft2"),
        ("!spectrum s=sizes axes==axesof:2 norm=one:backward:ortho:forward", "!spectrum axes=axes"),
    ),
    **dict.fromkeys(
        ("fft.rfftn", "fft.rfft2"),
        (
            "!spectrum:biuf s=sizes axes==axesof:2 norm=one:backward:ortho:forward",
            "!spectrum:biuf axes=axes",
        ),
    ),
    ".T": ("!x",),
    ".mT": ("!x",),
    ".flat": ("!x int:-2:5",),
    ".item": ("!x", "!x:::full flatitem"),
    ".tobytes": ("!x order=order:CFA",),
    ".view": ("!x dtype:iufc",),
    ".attributes": ("!x",),
    "builtins.divmod": ("!x:iuf like:iuf",),
    "builtins.matmul": (
        "!x::2:full:plain matrix",
        "!x::3:full:plain matrix",
        "!x::1:full:plain rows",
    ),
    "builtins.contains": ("!x scalar",),
    "builtins.numbers": ("!x",),
    "builtins.list": ("!x",),
}


def _partition(xp: Any, x: Any, kth: Any, axis: int) -> tuple[Any, Any, Any]:
    found = xp.partition(x, kth, axis=axis)
    return _parts(xp, found, kth)


def _argpartition(xp: Any, x: Any, kth: Any, axis: int) -> tuple[Any, Any, Any]:
    places = xp.argpartition(x, kth, axis=axis)
    return _parts(xp, xp.take_along_axis(x, places, axis=axis), kth)


def _parts(xp: Any, found: Any, kth: Any) -> tuple[Any, Any, Any]:
    """Return the element at the position, and the sets before and after it, whose order is free."""
    kth = kth % max(found.shape[-1], 1)
    before, behind = found[..., :kth], found[..., kth + 1 :]
    return found[..., kth], xp.sort(before, axis=-1), xp.sort(behind, axis=-1)


def _eigh(xp: Any, x: Any, **options: Any) -> tuple[Any, Any]:
    values, vectors = xp.linalg.eigh(x, **options)
    return values, (vectors * values[..., None, :]) @ xp.conj(xp.matrix_transpose(vectors))


def _eig(xp: Any, x: Any) -> Any:
    values, vectors = xp.linalg.eig(x)
    rest = x @ vectors - vectors * values[..., None, :]
    return bool(xp.max(xp.abs(rest)) < 1e-4 * (1 + float(xp.max(xp.abs(x)))))


def _svd(xp: Any, x: Any, **options: Any) -> Any:
    if options.get("compute_uv") is False:
        return xp.linalg.svd(x, **options)
    u, s, vh = xp.linalg.svd(x, **options)
    n = s.shape[-1]
    return u.shape, s, vh.shape, (u[..., :n] * s[..., None, :]) @ vh[..., :n, :]


def _qr(xp: Any, x: Any, **options: Any) -> Any:
    found = xp.linalg.qr(x, **options)
    if options.get("mode") == "r":
        return found.shape, xp.conj(xp.matrix_transpose(found)) @ found
    return found[0].shape, found[1].shape, found[0] @ found[1], xp.tril(found[1], -1)


def _roots(xp: Any, p: Any) -> Any:
    return xp.sort(xp.real(xp.roots(p)))


def _polyfit(xp: Any, x: Any, deg: int, **options: Any) -> Any:
    return xp.polyfit(xp.arange(x.shape[0], dtype="float64"), x, deg, **options)


def _attributes(x: Any) -> tuple[Any, ...]:
    strides = tuple(step for step, n in zip(x.strides, x.shape, strict=True) if n > 1)
    return x.shape, strides if x.size else (), x.ndim, x.size, x.nbytes, x.itemsize, x.dtype


def _numbers(x: Any) -> list[Any]:
    """Return the conversions of an array to Python's number types, or their errors."""
    found: list[Any] = []
    # NumPy's versions differ in whether an array of one element is a number.
    for convert in (bool, len, *((int, float, complex) if x.ndim == 0 or x.size != 1 else ())):
        try:
            found.append(convert(x))
        except Exception as error:
            found.append("refused" if isinstance(error, TypeError | ValueError) else type(error))
    return found


#: Wrappers of functions with more than one correct result, and of attributes that are not
#: functions: each returns a result with only one correct form.
COMPARED: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "partition": lambda xp: partial(_partition, xp),
    "argpartition": lambda xp: partial(_argpartition, xp),
    "linalg.eigh": lambda xp: partial(_eigh, xp),
    "linalg.eig": lambda xp: partial(_eig, xp),
    "linalg.svd": lambda xp: partial(_svd, xp),
    "linalg.qr": lambda xp: partial(_qr, xp),
    "roots": lambda xp: partial(_roots, xp),
    "polyfit": lambda xp: partial(_polyfit, xp),
    "empty": lambda xp: lambda *args, **kwargs: _attributes(xp.empty(*args, **kwargs)),
    "empty_like": lambda xp: lambda *args, **kwargs: _attributes(xp.empty_like(*args, **kwargs)),
    "fromfunction": lambda xp: (
        lambda shape, **options: xp.fromfunction(
            lambda *at: sum(at[1:], at[0]) * 2, shape, **options
        )
    ),
    "apply_along_axis": lambda xp: (
        lambda x, axis: (
            xp.apply_along_axis(lambda line: line.max() - line.min(), axis, x)
            if x.dtype != bool
            else xp.apply_along_axis(lambda line: line[:1], axis, x)
        )
    ),
    "apply_over_axes": lambda xp: lambda x, axes: xp.apply_over_axes(xp.sum, x, axes),
    "mask_indices": lambda xp: lambda n, k=0: xp.mask_indices(n, xp.triu, k),
    ".T": lambda xp: lambda x: x.T,
    ".mT": lambda xp: lambda x: x.mT,
    ".flat": lambda xp: lambda x, at: x.flat[at],
    ".attributes": lambda xp: _attributes,
    "builtins.divmod": lambda xp: divmod,
    "builtins.matmul": lambda xp: lambda x, y: x @ y,
    "builtins.contains": lambda xp: lambda x, value: value in x,
    "builtins.numbers": lambda xp: _numbers,
    "builtins.list": lambda xp: list,
}

#: NumPy functions that no generated call can compare, and the reasons.
NOT_COMPARED: dict[str, str] = {
    "array_repr": "tells the device",
    **dict.fromkeys(
        (
            *("fromfile", "genfromtxt", "load", "loadtxt"),
            *("save", "savetxt", "savez", "savez_compressed"),
        ),
        "files",
    ),
    **dict.fromkeys(
        ("geterr", "seterr", "get_printoptions", "set_printoptions", "printoptions"),
        "settings",
    ),
    "from_dlpack": "takes arrays of other libraries",
    "einsum_path": "tells a plan",
}
