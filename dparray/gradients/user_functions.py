"""Derivatives of element-wise functions of users, by the adjoint of a kernel that calls them."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._functions.user_functions import ElementwiseFunction
from dparray._kernel.function import KernelFunction
from dparray._type_keys import code_of
from dparray.gradients.calls import OF_CLASSES
from dparray.gradients.kernels import Form, called, is_moved, kept
from dparray.gradients.public import dp
from dparray.gradients.tape import matched
from dparray.gradients.traced import Spec, Traced, innermost, is_float, lowered
from dparray.gradients.transforms import recorded
from dparray.kernel_api import Range

#: The kernels of functions, by which of their operands are arrays.
_FORMS: WeakKeyDictionary[ElementwiseFunction, dict[tuple[bool, ...], Form]] = WeakKeyDictionary()


def call_elementwise(
    function: ElementwiseFunction, operands: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call a user's function with traced operands, and record it.

    Raises:
        GradientError: it has no derivative; the error names the line.
    """
    level = innermost(operands)
    assert level is not None
    values = [lowered(x, level) for x in operands]
    values = [dp.asarray(x) if isinstance(x, list | tuple | range) else x for x in values]
    answer = function(*values)
    if isinstance(answer, tuple):  # Now it is known that it has several results.
        return function(*operands)
    if not is_float(answer):
        return answer
    places = [n for n, x in enumerate(operands) if is_moved(x, level)]
    are_arrays = tuple([isinstance(x, ndarray | Traced) for x in values])
    form = _form(function, are_arrays)
    backward = form.adjoint([form.inputs[place] for place in places])
    reads = [kept(x) for x in values]
    specs = [Spec(values[place]) for place in places]
    shape = answer.shape
    dtype = np.result_type(*[x.dtype for x in values if isinstance(x, ndarray | Traced)])

    dtypes = [x.dtype if hasattr(x, "dtype") else np.result_type(dtype, x) for x in values]
    codes = [
        code_of(each) + ":1C" * is_one for each, is_one in zip(dtypes, are_arrays, strict=True)
    ]
    backward.kernel.adjoint(("item:1", *codes, f"{code_of(answer.dtype)}:1C"))  # or it is refused

    def pulled(gs: list[Any]) -> list[Any]:
        given = {"g_out": dp.reshape(gs[0], (-1,))}
        for name, read in zip(form.inputs, reads, strict=True):
            x = read()
            if isinstance(x, ndarray | Traced):
                x = dp.reshape(dp.broadcast_to(x, shape), (-1,))
            given[name] = x if hasattr(x, "dtype") else np.result_type(dtype, x).type(x)
        found = called(backward, Range(prod(shape)), [given[name] for name in backward.inputs])
        return [matched(dp.reshape(g, shape), s) for g, s in zip(found, specs, strict=True)]

    if prod(shape) == 0:
        return answer
    return recorded(level, operands, places, [answer], pulled)[0]


OF_CLASSES[ElementwiseFunction] = call_elementwise


def _form(function: ElementwiseFunction, are_arrays: tuple[bool, ...]) -> Form:
    """Return a kernel that calls the function for each element of arrays in one dimension."""
    known = _FORMS.setdefault(function, {})
    if are_arrays not in known:
        names = [f"x{number}" for number in range(len(are_arrays))]
        pairs = zip(names, are_arrays, function._prefixes, strict=True)
        given = [f"{prefix}{name}{'[i]' * is_one}" for name, is_one, prefix in pairs]
        name = function.__name__ if function.__name__.isidentifier() else "function"
        text = (
            f"def {name}(item, {', '.join(names)}, out):\n"
            "    i = item.get_id(0)\n"
            f"    out[i] = scalar__({', '.join(given)})\n"
        )
        file = f"<kernel of {function.__qualname__} {are_arrays}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"__name__": __name__, "scalar__": function.device_function}
        exec(compile(text, file, "exec"), scope)
        kernel = KernelFunction(scope[name], dict(function.options))
        known[are_arrays] = Form(kernel, {"out": 1})
    return known[are_arrays]
