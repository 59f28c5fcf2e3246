"""Generated calls of NumPy's functions: both modules get the same arguments, derived from a seed.

A call consists of a function's name, arguments and keywords. A *recipe* is a text that describes
the arguments of a function, with one word for each argument. Words with ``=`` are keywords that a
call may omit; words with ``==`` are keywords that it always has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tests.functions.generated_arguments import ALL, Arr, Call, Random, Words
from tests.functions.generated_options import COMPARED, OPTIONS

#: Functions with as many results as there are pairs of elements: they get small arguments.
OF_PAIRS = frozenset(
    {"corrcoef", "cov", "diag", "diagflat", "ix_", "kron", "meshgrid", "outer", "vander"}
)
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def kinds_of(ufunc: np.ufunc) -> str:
    """Return the kinds of numbers that a ufunc takes."""
    found = {np.dtype(each[0]).kind for each in ufunc.types if each[0] not in "OMmgGSUV"}
    return "".join(
        kind for kind in ALL if kind in found | ({"b", "i", "u"} if "f" in found else set())
    )


UFUNC = "dtype=dtype casting=one:same_kind:unsafe order=order"
REDUCED = "axis=axes keepdims=flag"

#: Recipes by function; ``!`` before a recipe means without `out=`.
RECIPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("all", "any"), (f"x {REDUCED} where=masks",)),
    **dict.fromkeys(
        ("max", "min", "amax", "amin", "nanmax", "nanmin"),
        (
            f"x::: {REDUCED}",
            f"x {REDUCED} initial=scalar:f",
            f"x:if {REDUCED} where=masks initial=int:-3:3",
        ),
    ),
    **dict.fromkeys(
        ("sum", "prod", "nansum", "nanprod"),
        (f"x {REDUCED} dtype=sumdtype initial=int:-2:3 where=masks",),
    ),
    **dict.fromkeys(("mean", "nanmean"), (f"x:{ALL}::full {REDUCED} dtype=dtype:fc where=masks",)),
    **dict.fromkeys(
        ("std", "var", "nanstd", "nanvar"),
        (
            f"x:{ALL}::full {REDUCED} ddof=int:0:2 where=masks",
            f"x:biuf::full {REDUCED} dtype=dtype:f",
        ),
    ),
    "ptp": (f"!x:iufc {REDUCED}",),
    "count_nonzero": (f"!x {REDUCED}",),
    **dict.fromkeys(
        ("argmax", "argmin", "nanargmax", "nanargmin"), ("x:biuf::full axis=axisn keepdims=flag",)
    ),
    **dict.fromkeys(
        ("cumsum", "cumprod", "nancumsum", "nancumprod"), ("x axis=axisn dtype=sumdtype",)
    ),
    **dict.fromkeys(
        ("cumulative_sum", "cumulative_prod"),
        ("!x axis=axis dtype=sumdtype include_initial=flag",),
    ),
    **dict.fromkeys(("median", "nanmedian"), (f"x:biuf::full {REDUCED}",)),
    **dict.fromkeys(
        ("percentile", "nanpercentile"),
        (
            f"!x:iuf::full q:100 {REDUCED} method=one:linear:lower:higher:nearest:midpoint:"
            "median_unbiased:inverted_cdf:hazen:weibull",
        ),
    ),
    **dict.fromkeys(
        ("quantile", "nanquantile"),
        (f"!x:iuf::full q {REDUCED} method=one:linear:lower:higher:nearest:midpoint",),
    ),
    "average": (
        "!x:iufc::full axis=axisn keepdims=flag returned=flag",
        "!x:iufc:1:full weights=weights returned=flag",
    ),
    "clip": ("x:iuf scalar:iuf scalar:iuf", "x:iuf like:iuf like:iuf", "x:iuf one:None scalar:if"),
    "around": ("x decimals=int:-2:3",),
    "round": ("x decimals=int:-2:3",),
    "angle": ("!x deg=flag",),
    **dict.fromkeys(("real", "imag", "iscomplex", "isreal", "sinc"), ("!x",)),
    "i0": ("!x:biuf",),
    **dict.fromkeys(("isneginf", "isposinf", "fix"), ("x:biuf",)),
    "nan_to_num": ("!x nan=float posinf=float neginf=float copy=flag",),
    "real_if_close": ("!x tol=int:2:100",),
    "unwrap": ("!x:if::full:plain axis=axis period=int:2:7 discont=int:1:4",),
    **dict.fromkeys(("isclose", "allclose"), ("!x like rtol=float atol=float equal_nan=flag",)),
    **dict.fromkeys(("array_equal",), ("!x same equal_nan=flag", "!x like")),
    "array_equiv": ("!x like",),
    "where": ("!x:b like like", "!x"),
    "nonzero": ("!x",),
    "flatnonzero": ("!x",),
    "argwhere": ("!x",),
    "select": ("!masksx choices2 default=scalar",),
    "extract": ("!x:b same2",),
    "compress": ("x:b:1 same2",),
    "take": ("x axisindex lastaxis mode=one:wrap:clip:raise",),
    "take_along_axis": ("!xnd alongindex lastaxis",),
    "put_along_axis": ("!xnd alongindex scalar:i lastaxis",),
    "choose": ("chooser choices mode=one:wrap:clip:raise",),
    "put": ("!x:::full flatindex scalar:i mode=one:wrap:clip:raise",),
    "place": ("!x mask vals",),
    "putmask": ("!x mask same", "!x mask scalar:bi"),
    "copyto": (
        "!x same where=masks",
        "!x scalar:bi where=masks",
        "!x like casting=one:unsafe:safe",
    ),
    "fill_diagonal": ("!x::2:full scalar:bi wrap=flag",),
    "sort": ("!x axis=axisn kind=one:quicksort:stable:mergesort:heapsort",),
    "argsort": ("!x axisn one:stable:mergesort",),
    "sort_complex": ("!x",),
    "lexsort": ("!(same 1)", "!(same 2) axis=axis"),
    "searchsorted": ("!sorted:iuf x:iuf side=one:left:right",),
    "digitize": ("!x:iuf sorted:if right=flag",),
    "bincount": ("!x:u:1:plain minlength=int:0:12",),
    "histogram": ("!x:iuf::full:plain bins=bins range=range density=flag",),
    "histogram_bin_edges": ("!x:iuf::full:plain bins=bins range=range",),
    "unique": (
        "!x return_index=flag return_inverse=flag return_counts=flag equal_nan=flag",
        "!x:iuf axis=axis return_index=flag return_counts=flag",
    ),
    **dict.fromkeys(
        ("unique_values", "unique_counts", "unique_inverse", "unique_all"), ("!x:biuf",)
    ),
    **dict.fromkeys(("union1d", "setxor1d", "setdiff1d"), ("!x:biuf like:biuf",)),
    "intersect1d": ("!x:iuf like:iuf return_indices=flag",),
    "isin": ("!x like invert=flag",),
    "reshape": ("!x reshape order=order:CFA",),
    "ravel": ("!x order=order",),
    ".flatten": ("!x order=order",),
    ".copy": ("!x order=order",),
    ".astype": ("!x dtype order=order",),
    ".tolist": ("!x",),
    ".fill": ("!x:::full scalar:bi",),
    ".conj": ("!x",),
    ".byteswap": ("!x",),
    ".nonzero": ("!x",),
    ".view": ("!x",),
    ".sort": ("!x axis=axis",),
    "astype": ("!x dtype copy=flag",),
    "copy": ("!x order=order",),
    "array": ("!x dtype=dtype order=order ndmin=int:0:4",),
    "asarray": ("!x dtype=dtype order=order",),
    "asfortranarray": ("!x",),
    "ascontiguousarray": ("!x",),
    "require": ("!x",),
    "transpose": ("!x permutation",),
    "permute_dims": ("!x permutation",),
    "moveaxis": ("!x axis axis",),
    "swapaxes": ("!x axis axis",),
    "rollaxis": ("!x axis",),
    "expand_dims": ("!x int:-2:2",),
    "squeeze": ("!x axis=axes",),
    "flip": ("!x axis=axes",),
    "flipud": ("!x",),
    "fliplr": ("!x",),
    "rot90": ("!x:::full k=int:-5:5",),
    "roll": ("!x shift axis=axes",),
    "repeat": ("!x repeats axis=axisn",),
    "tile": ("!x reps",),
    "resize": ("!x shape",),
    "broadcast_to": ("!x broadcast",),
    "broadcast_arrays": ("!x* like",),
    "atleast_1d": ("!x",),
    "atleast_2d": ("!x",),
    "atleast_3d": ("!x",),
    **dict.fromkeys(
        ("concatenate", "concat"),
        ("(joined) lastaxis dtype=dtype casting=one:unsafe:same_kind", "!(same) one:None"),
    ),
    "stack": ("(same) axis=axis dtype=dtype:fc",),
    **dict.fromkeys(("hstack", "vstack"), ("!(same) dtype=dtype:fc",)),
    **dict.fromkeys(("dstack", "column_stack"), ("!(same)",)),
    "block": ("!(same)",),
    "append": ("!x same axis=axisn",),
    "split": ("!x sections axis=axis",),
    "array_split": ("!x sections axis=axis",),
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), ("!x sections",)),
    "unstack": ("!x axis=axis",),
    "delete": ("!x deleted lastaxis",),
    "insert": ("!x deleted scalar:i lastaxis",),
    "pad": (
        "!x widths mode=one:constant:edge:reflect:symmetric:wrap:linear_ramp:maximum:mean:minimum",
        "!x widths constant_values=int:-3:5",
    ),
    "trim_zeros": ("!x::1 trim=one:fb:f:b",),
    "diff": ("!x n=int:0:3 axis=axis", "!x:iuf:1 prepend=int:-2:2 append=int:-2:2"),
    "ediff1d": ("!x:iufc to_end=int:-2:2",),
    "gradient": ("!x:iufc axis=axes edge_order=int:1:2", "!x:iufc:1 scalar:f"),
    "trapezoid": ("!x:iufc::full dx=float axis=axis",),
    "interp": ("!x:if sortedx fps left=float right=float",),
    "convolve": ("!x::1:full:plain vector mode=one:full:same:valid",),
    "correlate": ("!x::1:full:plain vector mode=one:full:same:valid",),
    **dict.fromkeys(
        ("matmul", "dot"),
        ("x::2:full:plain matrix", "x::3:full:plain matrix", "x::1:full:plain matrix"),
    ),
    "inner": ("!x:::full:plain rows",),
    "outer": ("x:::plain like",),
    "vdot": ("!x:::plain same",),
    "vecdot": ("!x:::full:plain rows",),
    "kron": ("!x:::plain vector", "!x::2:plain vector"),
    "tensordot": ("!x::2:full:plain matrix2 int:1:1",),
    "matvec": ("!x::2:full:plain rowsv",),
    "vecmat": ("!vectorrows x2",),
    "cross": ("!vectors3 vectors3",),
    "trace": ("x::2 offset=int:-2:2", "x::3 offset=int:-1:1 dtype=sumdtype"),
    "diagonal": ("!x::2 offset=int:-2:2", "!x::3 offset=int:-1:1"),
    "diag": ("!x::1 k=int:-2:2", "!x::2 k=int:-2:2"),
    "diagflat": ("!x k=int:-2:2",),
    "tril": ("!x::2 k=int:-2:2", "!x::3 k=int:-2:2"),
    "triu": ("!x::2 k=int:-2:2", "!x::3 k=int:-2:2"),
    "vander": ("!x::1:plain N=int:0:4 increasing=flag",),
    "cov": ("!x:iuf:2:full:plain rowvar=flag ddof=int:0:1",),
    "corrcoef": ("!x:f:2:full:plain rowvar=flag",),
    "packbits": ("!x:b axis=axisn bitorder=one:big:little",),
    "unpackbits": ("!bytes axis=axisn bitorder=one:big:little",),
    "unravel_index": ("!linear shape345 order=order:CF",),
    "ravel_multi_index": ("!multi shape345 order=order:CF mode=one:raise:wrap:clip",),
    "polyval": ("!x:ifc:1:full:plain x",),
    "polyadd": ("!x:ifc:1:full vector",),
    "polysub": ("!x:ifc:1:full vector",),
    "polymul": ("!x:ifc:1:full:plain vector",),
    "polyder": ("!x:ifc:1:full int:1:2",),
    "polyint": ("!x:ifc:1:full int:1:2",),
    "zeros": ("!shape dtype=dtype order=order:CF",),
    "ones": ("!shape dtype=dtype order=order:CF",),
    "full": ("!shape scalar dtype=dtype:c order=order:CF",),
    "zeros_like": ("!x dtype=dtype order=order shape=shape",),
    "ones_like": ("!x dtype=dtype order=order",),
    "full_like": ("!x int:0:1 dtype=dtype order=order",),
    "eye": ("!int:0:5 M=int:0:5 k=int:-2:2 dtype=dtype order=order:CF",),
    "identity": ("!int:0:5 dtype=dtype",),
    "tri": ("!int:0:5 M=int:0:5 k=int:-2:2 dtype=dtype",),
    "arange": ("!int:-3:9", "!int:-3:9 int:-3:20 int:1:3 dtype=dtype:if", "!float float"),
    "linspace": (
        "!scalar:if scalar:if num=int:0:9 endpoint=flag dtype=dtype:f",
        "!x:if::plain like:if num=int:1:9 axis=int:-1:0",
    ),
    "logspace": ("!int:-2:2 int:-2:3 num=int:0:9 base=int:2:4",),
    "geomspace": ("!int:1:9 int:1:9 num=int:0:9",),
    "indices": ("!shape23 sparse=flag",),
    "meshgrid": ("!*grids sparse=flag indexing=one:xy:ij",),
    "tril_indices": ("!int:0:5 k=int:-2:2",),
    "triu_indices": ("!int:0:5 k=int:-2:2",),
    "diag_indices": ("!int:0:5",),
    **dict.fromkeys(("bartlett", "blackman", "hamming", "hanning"), ("!int:0:17",)),
    "kaiser": ("!int:0:17 int:0:14",),
    **dict.fromkeys(("ndim", "shape", "size", "iscomplexobj", "isrealobj", "isfortran"), ("!x",)),
    "matrix_transpose": ("!x::3", "!x::2"),
    "result_type": ("!x like", "!x scalar"),
    "linalg.norm": ("!x::1:plain ord=one:None", "!x:f:2:full:plain axis=axisn keepdims=flag"),
    **dict.fromkeys(
        ("linalg.inv", "linalg.det", "linalg.slogdet", "linalg.pinv", "linalg.eigvals"),
        ("!square",),
    ),
    **dict.fromkeys(("linalg.cholesky", "linalg.eigvalsh"), ("!hermitian",)),
    "linalg.cond": ("!square",),
    "linalg.matrix_rank": ("!square",),
    "linalg.svdvals": ("!square",),
    "linalg.solve": ("!square rhs",),
    "linalg.matrix_power": ("!square int:-2:4",),
    "linalg.vector_norm": ("!x:fc::full:plain axis=axes keepdims=flag ord=int:1:3",),
    "linalg.matrix_norm": ("!x:fc:2:full:plain keepdims=flag", "!x:fc:3:full:plain keepdims=flag"),
    "linalg.multi_dot": ("!chain",),
    "linalg.trace": ("!x::3 offset=int:-1:1",),
    "linalg.diagonal": ("!x::3 offset=int:-1:1",),
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.hfft", "fft.irfft"),
        ("!spectrum n=lengths axis=axis norm=one:backward:ortho:forward",),
    ),
    **dict.fromkeys(
        ("fft.rfft", "fft.ihfft"),
        ("!spectrum:biuf n=lengths axis=axis norm=one:backward:ortho:forward",),
    ),
    **dict.fromkeys(
        ("fft.fftn", "fft.ifftn", "fft.irfftn"), ("!spectrum norm=one:backward:ortho:forward",)
    ),
    "fft.rfftn": ("!spectrum:biuf norm=one:backward:ortho:forward",),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), ("!x:::full axes=axes",)),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), ("!int:1:20 d=float",)),
    "getitem": ("!x subscript",),
    "setitem": ("!x subscript scalar:bi", "!x subscript fitting"),
    "einsum": (
        "!text:ij,jk->ik mat23 mat34",
        "!text:ij->ji x::2",
        "!text:ii->i mat33",
        "!text:ij,ij->i mat23 mat23",
        "!text:...i,i->... mat23 vec3",
        "!text:ij-> mat23",
    ),
}

for _name, _recipes in OPTIONS.items():
    RECIPES[_name] = RECIPES.get(_name, ()) + _recipes

OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift"),
    *("rshift", "lt", "le", "eq", "ne", "gt", "ge", "iadd", "isub", "imul", "itruediv"),
    *("ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift"),
    *("neg", "pos", "abs", "invert"),
)
ONE_OPERAND = frozenset({"neg", "pos", "abs", "invert"})


def lookup(xp: Any, name: str) -> Callable[..., Any]:
    """Return the function of a call in a module."""
    if name in COMPARED:
        return COMPARED[name](xp)
    if name.startswith("."):
        return lambda x, *args, **kwargs: getattr(x, name[1:])(*args, **kwargs)
    if name.startswith("operator."):
        return getattr(operator, name.removeprefix("operator."))
    if name == "getitem":
        return operator.getitem
    if name == "setitem":
        return operator.setitem
    return member(xp, name)


def member(xp: Any, name: str) -> Callable[..., Any]:
    """Return a module's attribute of that name, which may be in a submodule."""
    for part in name.split("."):
        xp = getattr(xp, part)
    return xp


def ufuncs(module: Any) -> list[str]:
    """Return the names of ufuncs that both modules have."""
    return sorted(
        name
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc)
        and getattr(np, name).signature is None
        and hasattr(module, name)
    )


@cache
def binary_ufuncs() -> list[str]:
    """Return the names of ufuncs with two operands and one result."""
    return [
        name for name in ufuncs(np) if (getattr(np, name).nin, getattr(np, name).nout) == (2, 1)
    ]


def recipe_call(name: str, recipe: str, make: Words) -> Call:
    """Return a call that follows a recipe."""
    takes_out = not recipe.startswith("!")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in recipe.removeprefix("!").split() if "(" not in recipe else _words(recipe):
        key, is_keyword, rest = word.partition("=")
        if is_keyword and ":" not in key and not key.startswith("("):
            if rest.startswith("=") or make.chance(0.35):
                kwargs[key] = make.make(rest.removeprefix("="))
        elif word.startswith("*"):
            args += make.make(word[1:])
        else:
            args.append(make.make(word.replace("x*", "x")))
    call = Call(name, args, kwargs)
    if takes_out and make.chance(0.12):
        _give_out(call, make)
    return call


def _words(recipe: str) -> list[str]:
    """Return the words of a recipe whose first word is in parentheses."""
    head, _, rest = recipe.removeprefix("!").partition(")")
    return [head + ")", *rest.split()]


def ufunc_call(name: str, make: Words) -> Call:
    """Return a call of a ufunc."""
    ufunc = getattr(np, name)
    kinds = kinds_of(ufunc)
    if make.chance(0.03):
        kinds = ALL
    first = make.x(kinds)
    args: list[Any] = [first]
    if ufunc.nin == 2:
        args.append(make.partner(first.seen.shape, kinds, first.values.dtype.name))
        if make.chance(0.3):
            args.reverse()
    call = Call(name, args)
    if make.chance(0.15):
        call.kwargs["order"] = make.one("CFAK")
    if make.chance(0.1):
        call.kwargs["dtype"] = make.dtype()
        if make.chance(0.3):
            call.kwargs["casting"] = make.one(("unsafe", "same_kind", "safe"))
    if make.chance(0.12):
        _give_out(call, make)
        # NumPy 2.2 ends the process in `np.greater(unsigned, -4, out=..., where=...)`.
        ends = name in COMPARISONS and any(type(arg) is int for arg in call.args)
        if "out" in call.kwargs and make.chance(0.4) and not ends:
            shape = make.first.shape if ufunc.nout > 1 else call.kwargs["out"].seen.shape
            call.kwargs["where"] = make.partner(shape, "b")
    return call


def _give_out(call: Call, make: Words) -> None:
    """Add ``out=``, of the shape that NumPy's result has."""
    try:
        with np.errstate(all="ignore"):
            result = carry_out(np, call)[0]
    except Exception:
        return
    parts = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(x, np.ndarray | np.generic) and x.dtype.kind in ALL for x in parts):
        return
    # NumPy's `choose` writes out of bounds if `out` has gaps or negative steps; so does the
    # `vecmat` of complex numbers in NumPy 2.4.
    has_views = not (
        (call.name == "choose" and call.kwargs.get("mode", "raise") != "raise")
        or (call.name == "vecmat" and parts[0].dtype.kind == "c")
    )
    outs = []
    for part in parts:
        dtype = part.dtype.name if make.chance(0.7) else make.dtype()
        outs.append(make.array(shape=np.shape(part), dtype=dtype, plain=True, views=has_views))
    if not any(view[0] == "broadcast" for out in outs for view in out.views):
        call.kwargs["out"] = tuple(outs) if isinstance(result, tuple) else outs[0]


def operator_call(name: str, make: Words) -> Call:
    """Return a call of an operator."""
    first = make.x()
    args: list[Any] = [first]
    if name not in ONE_OPERAND:
        args.append(make.partner(first.seen.shape, ALL, first.values.dtype.name))
        if make.chance(0.3) and not name.startswith("i"):
            args.reverse()
    return Call("operator." + name, args)


def method_of_ufunc_call(make: Words) -> Call:
    """Return a call of ``add.reduce`` or a related method of a ufunc of two operands."""
    name = make.one(binary_ufuncs())
    kinds = kinds_of(getattr(np, name))
    method = make.one(("reduce", "reduce", "accumulate", "outer", "reduceat", "at"))
    x = make.x(kinds, empty=False, plain=name in ("power", "float_power", "ldexp"))
    if method == "outer":
        x.views, x.values = (), x.values[:40] if x.values.ndim else x.values
        make.reaches_limits = False
        return Call(f"{name}.outer", [x, make.array(kinds, ndim=1)])
    if method == "at":
        if not make.first.ndim or any(view[0] == "broadcast" for view in x.views):
            x = Arr(make.fill((7,), x.values.dtype.name))
            make.first = x.values
        at = make.index(make.first.shape[0])
        if "power" in name:  # results of powers have no significant digits left
            at = int(make.random.integers(make.first.shape[0]))
        return Call(f"{name}.at", [x, at, make.scalar(kinds)])
    kwargs: dict[str, Any] = {"axis": make.axis()} if make.chance(0.7) else {}
    if method == "reduceat":
        n = make.first.shape[kwargs.get("axis", 0) % make.first.ndim] if make.first.ndim else 1
        at = make.random.integers(0, n, int(make.random.integers(1, 5)))
        return Call(f"{name}.reduceat", [x, Arr(at)], kwargs)
    if make.chance(0.2):
        kwargs["dtype"] = make.w_sumdtype()
    if method == "reduce":
        if make.chance(0.3):
            kwargs["keepdims"] = True
        if make.chance(0.2):
            kwargs["initial"] = make.w_int("-2", "3")
        if make.chance(0.2):
            kwargs["where"] = make.w_masks()
    return Call(f"{name}.{method}", [x], kwargs)


TIERS = ("",) * 13 + ("eager", "no host tier", "no host tier", "library", "library", "busy")
TIERS += ("fused",)


def generate(name: str, random: Random, tiers: tuple[str, ...] = TIERS) -> Call:
    """Return a call of a function."""
    make = Words(random)
    make.reaches_limits = name not in OF_PAIRS
    if name.startswith("operator."):
        call = operator_call(name.removeprefix("operator."), make)
    elif name == "method of a ufunc":
        call = method_of_ufunc_call(make)
    elif name in RECIPES:
        call = recipe_call(name, str(make.one(RECIPES[name])), make)
    else:
        call = ufunc_call(name, make)
    call.tier = str(make.one(tiers))
    is_method = name in RECIPES and hasattr(np.ndarray, name) and make.chance(0.2)
    is_method &= name not in COMPARED and "correction" not in call.kwargs
    if is_method and isinstance(call.args[0], Arr):
        call.name = "." + name
    return call


def names(module: Any) -> list[str]:
    """Return the names of all functions that can be called."""
    return [
        *(name for name, recipes in RECIPES.items() if recipes),
        *ufuncs(module),
        *("operator." + name for name in OPERATORS),
        "method of a ufunc",
    ]


def build(xp: Any, value: Any, made: list[tuple[Any, Any]]) -> Any:
    """Return an argument as a module takes it; record its arrays in ``made``."""
    if isinstance(value, Arr):
        made.append(value.make(xp))
        return made[-1][1]
    if isinstance(value, list | tuple):
        return type(value)(build(xp, part, made) for part in value)
    return value


def carry_out(xp: Any, call: Call) -> tuple[Any, list[tuple[Any, Any]]]:
    """Execute a call; return the result, and the base and the view of each array argument."""
    made: list[tuple[Any, Any]] = []
    args = build(xp, call.args, made)
    kwargs = {key: build(xp, value, made) for key, value in call.kwargs.items()}
    return lookup(xp, call.name)(*args, **kwargs), made
