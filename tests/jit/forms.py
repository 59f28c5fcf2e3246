"""Run expressions of elements in each form in which dparray compiles them.

An expression is written with the names of its operands, as in ``"int(a) - int(b)"``.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import dparray as dp

#: ``checked`` is a ``prange`` loop in debug mode, which makes it a kernel on every device.
FORMS = ("kernel", "prange", "checked", "range", "elementwise", "simulate")
_count = itertools.count()


def function_of(text: str, **names: Any) -> Callable[..., Any]:
    """Return the function ``f`` of a text, whose lines tracebacks and compilers can read."""
    file = f"<forms {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"dp": dp, "np": np, "math": math, **names}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def uncompiled(expressions: Sequence[str], operands: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the values of expressions of elements, computed by Python and NumPy."""
    count = len(next(iter(operands.values())))
    rows = [{name: x[i] for name, x in operands.items()} for i in range(count)]
    with np.errstate(all="ignore"):
        return [
            np.array([float(eval(text, {"math": math, "np": np}, row)) for row in rows])
            for text in expressions
        ]


def compiled(
    form: str, expressions: Sequence[str], operands: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Return the values of expressions of elements as float64, computed in one form."""
    arrays = [dp.asarray(each) for each in operands.values()]
    names, size = ", ".join(operands), arrays[0].size
    if form == "elementwise":
        body = ", ".join(f"float({text})" for text in expressions)
        function = function_of(f"def f({names}):\n    return {body},\n")
        found = dp.elementwise(function, dtype=("float64",) * len(expressions))(*arrays)
        return [each.asnumpy() for each in found]
    operand = re.compile(rf"\b({'|'.join(operands)})\b")
    texts = [operand.sub(r"\1[i]", text) for text in expressions]
    lines = [f"        out[{at}, i] = {text}" for at, text in enumerate(texts)]
    loops = {"kernel": "if i >= 0", "simulate": "if i >= 0", "range": f"for i in range({size})"}
    loop = loops.get(form, f"for i in dp.prange({size})")
    function = function_of(f"def f({names}, out):\n    {loop}:\n" + "\n".join(lines) + "\n")
    out = dp.zeros((len(expressions), size), dtype="float64")
    if form in ("kernel", "simulate"):
        item = f"def f(item, {names}, out):\n    i = item.get_id(0)\n    {loop}:\n"
        kernel = dp.kernel(function_of(item + "\n".join(lines) + "\n"))
        launch = dp.call_kernel if form == "kernel" else dp.simulate
        launch(kernel, dp.Range(size), *arrays, out)
    else:
        with dp.config.override(debug=form == "checked"):
            dp.jit(function)(*arrays, out)
    return list(out.asnumpy())
