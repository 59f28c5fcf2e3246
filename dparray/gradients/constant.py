"""Functions without a derivative: integer results, and those that raise, with the way out."""

from __future__ import annotations

from typing import Any

from dparray.gradients.calls import COMPOSED, CONSTANT, REASONS
from dparray.gradients.elementwise import function_of
from dparray.gradients.public import dp
from dparray.gradients.traced import Traced, constants

#: Results are integers, Booleans, texts or shapes: traced operands are constants.
_CONSTANT = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isclose"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isfinite", "isinf", "isnan"),
    *("isneginf", "isposinf", "isreal", "iscomplex", "iscomplexobj", "isrealobj", "signbit"),
    *("argmax", "argmin", "argsort", "argpartition", "argwhere", "nonzero", "flatnonzero"),
    *("nanargmax", "nanargmin", "lexsort", "count_nonzero", "any", "all", "searchsorted"),
    *("digitize", "allclose", "array_equal", "array_equiv", "isin", "shape", "ndim", "size"),
    *("array_repr", "array_str", "array2string", "result_type", "common_type", "can_cast"),
    *("min_scalar_type", "shares_memory", "may_share_memory", "isfortran", "isscalar"),
    *("unique_counts", "unique_inverse", "diag_indices_from", "tril_indices_from"),
    *("triu_indices_from", "einsum_path", "linalg.matrix_rank", "histogram_bin_edges"),
    *("bitwise_count", "get_execution_queue", "get_coerced_usm_type", "synchronize"),
)

_LEAVES = "the values would leave the device, and the gradient would be lost"
_WRITES = "it writes files"
_SETS = "which elements it returns depends on the values; select them with an index: x[indices]"
_COUNTS = "it counts elements, so that its result is piecewise constant"
_BITS = "it works on the bits of integers"
_OF_PARAMETERS = (
    "samples are constants; transform standard ones: loc + scale * dp.random.normal(size=...)"
)
#: Why a function has no derivative.
_REASONS: dict[str, tuple[str, ...]] = {
    _LEAVES: ("asnumpy",),
    _WRITES: ("save", "savez", "savez_compressed", "savetxt"),
    _SETS: (
        *("unique", "unique_all", "unique_values", "union1d", "intersect1d", "setdiff1d"),
        "setxor1d",
    ),
    _COUNTS: ("histogram", "histogram2d", "histogramdd"),
    _BITS: (
        *("packbits", "unpackbits", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
        *("bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"),
    ),
    "a kernel returns nothing; call it as a function of its inputs: "
    'f = dp.differentiable(kernel, out="x"); y = f(range, x)': ("call_kernel", "call_kernel_async"),
}


def _evaluated(*arrays: Any, **options: Any) -> None:
    for x in arrays:
        constants(x)
        for part in _parts(x):
            dp.eval(part, **options)


def _parts(x: Any) -> Any:
    """Yield the plain arrays of a traced array: its value, and tangents in forward mode."""
    if type(x) is not Traced:
        yield x
        return
    if x._level.is_forward:
        yield from _parts(x._origin)
    yield from _parts(x._value)


def _enter() -> None:
    CONSTANT.update({function_of(name) for name in _CONSTANT})
    for reason, names in _REASONS.items():
        REASONS.update({function_of(name): reason for name in names})
    for name in dp.random.__all__:
        function = getattr(dp.random, name)
        if callable(function) and not isinstance(function, type):
            REASONS[function] = _OF_PARAMETERS
    COMPOSED[dp.eval] = _evaluated
    CONSTANT.update({dp.special.factorial, dp.special.comb, dp.special.perm})


_enter()
