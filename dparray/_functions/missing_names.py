"""Names of NumPy that the namespace does not have, and why.

``dp.char`` and the like raise ``AttributeError``, as any name that is not there; the message says
what there is instead.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

_STRINGS = "arrays hold numbers, not strings; keep text in NumPy arrays on the host"
_DATES = "arrays hold numbers, not dates; convert them to numbers on the host"
_RECORDS = "arrays have no fields; keep an array for each field"
_LONG = "devices compute in 64 bits at most; use float64 or complex128"
_OBJECTS = "arrays hold numbers, not Python objects"
_MATRICES = "use an array of two dimensions, and @ for products"
_ITERATORS = "write it with whole arrays, or as a kernel: dp.kernel, dp.elementwise"

_REASONS = {
    **dict.fromkeys(("bytes_", "char", "character", "str_", "strings"), _STRINGS),
    **dict.fromkeys(("busday_count", "busday_offset", "busdaycalendar", "datetime64"), _DATES),
    **dict.fromkeys(("datetime_as_string", "datetime_data", "is_busday", "isnat"), _DATES),
    "timedelta64": _DATES,
    **dict.fromkeys(("flexible", "rec", "recarray", "record", "void"), _RECORDS),
    **dict.fromkeys(("clongdouble", "complex256", "float128", "longdouble"), _LONG),
    **dict.fromkeys(("frompyfunc", "object_"), _OBJECTS),
    **dict.fromkeys(("asmatrix", "bmat", "matrix"), _MATRICES),
    **dict.fromkeys(("nditer", "nested_iters"), _ITERATORS),
    "fromregex": "read the text with NumPy and bring it to a device with dp.asarray",
    "ma": "write masks as arrays: dp.where, and where= of reductions",
    "memmap": "dp.load reads files through a bounded buffer",
    "polynomial": "there are dp.polyfit, dp.polyval and dp.poly1d",
    **dict.fromkeys(("getbufsize", "setbufsize"), "nothing is computed through buffers"),
    **dict.fromkeys(("geterrcall", "seterrcall"), "devices report no floating-point errors"),
    **dict.fromkeys(("show_config", "show_runtime"), "run the command dparray info"),
    **dict.fromkeys(("core", "ctypeslib", "f2py"), "it is about NumPy's own memory; use numpy"),
    "get_include": "kernels are written in Python: dp.kernel",
    "typing": "annotate with dp.ndarray",
    "ufunc": "functions are Python functions; those that are ufuncs in NumPy have nin, nout",
    # Second names of one function, older ones of NumPy's among them.
    "in1d": "write dp.isin(x, y)",
    "row_stack": "write dp.vstack(arrays)",
    "to_numpy": "write dp.asnumpy(x)",
    "trapz": "write dp.trapezoid(y, x)",
    # Names of CuPy, JAX, PyTorch, numba-dpex and dpctl.
    **dict.fromkeys(("ElementwiseKernel", "fuse"), "decorate a function with @dp.elementwise"),
    "ReductionKernel": "decorate a function with @dp.reduction",
    **dict.fromkeys(
        ("cuda", "dpjit", "njit"),
        "kernels are written in Python: @dp.kernel, and dp.call_kernel(kernel, dp.Range(n), ...)",
    ),
    **dict.fromkeys(
        ("RawKernel", "RawModule"), "write dp.raw_kernel(source, name), in OpenCL C or SPIR-V"
    ),
    "jit": "array code fuses by itself, and loops over elements are kernels: @dp.kernel",
    **dict.fromkeys(("prange", "parallel"), "write the loop body as a kernel: @dp.kernel"),
    **dict.fromkeys(
        ("vmap", "grad", "pmap"), "there are no transformations; write it with whole arrays"
    ),
    **dict.fromkeys(("get_devices", "device_count", "local_devices"), "write dp.devices()"),
    **dict.fromkeys(("select_device", "SyclDevice"), "write dp.Device('cpu')"),
    **dict.fromkeys(("SyclQueue", "stream", "Stream"), "queues are dpctl's: dpctl.SyclQueue()"),
    "get_default_memory_pool": "there are dp.memory.stats(), dp.memory.release()",
    "get_array_module": "write x.__array_namespace__()",
    "device_put": "write dp.asarray(x, device=...), or x.to_device(device)",
    "device_get": "write dp.asnumpy(x)",
    "block_until_ready": "write dp.synchronize()",
    **dict.fromkeys(("tensor", "from_numpy", "as_tensor"), "write dp.asarray(x)"),
    "manual_seed": "write dp.random.seed(seed), or rng = dp.random.default_rng(seed)",
    "no_grad": "nothing is differentiated; leave it out",
    "emath": "convert to complex first: x.astype('complex128')",
}


#: Attributes of NumPy's arrays that ours do not have, and why.
ATTRIBUTES = {
    "base": "dp.shares_memory(x, y) tells whether two arrays share memory",
    "byteswap": "devices have one order of bytes; write x.asnumpy().byteswap()",
    "ctypes": "the memory may be the device's own; write x.asnumpy().ctypes",
    "data": "the memory may be the device's own; write x.asnumpy().data",
    "dump": "write pickle.dump(x, file), or dp.save(file, x)",
    "dumps": "write pickle.dumps(x)",
    "getfield": "arrays have no fields; x.view(dtype) sees the memory as another dtype",
    "is_integer": "write x.item().is_integer()",
    "setfield": "arrays have no fields; x.view(dtype) sees the memory as another dtype",
    "setflags": "arrays can always be written; take a copy to keep the values",
    "tostring": "write x.tobytes()",
    # Names of CuPy, JAX and PyTorch.
    **dict.fromkeys(
        ("cpu", "detach", "get", "numpy"), "write x.asnumpy(), which copies to the host and waits"
    ),
    **dict.fromkeys(("cuda", "to"), "write x.to_device(device), or x.astype(dtype)"),
    "clone": "write x.copy()",
    "numel": "write x.size",
    "dim": "write x.ndim",
    "permute": "write x.transpose(axes), or dp.permute_dims(x, axes)",
    "at": "arrays can be written: x[index] = value; ufuncs have .at, as dp.add.at(x, index, y)",
    "block_until_ready": "write dp.synchronize()",
    "set": "write x[...] = dp.asarray(values, device=x.device)",
    "stream": "the queue is x.sycl_queue",
    **dict.fromkeys(("unsqueeze",), "write x[:, None], or dp.expand_dims(x, axis)"),
    **dict.fromkeys(("requires_grad", "grad", "backward"), "nothing is differentiated"),
}


def _removed(name: str) -> str | None:
    """NumPy's words about a name that it had once."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(np, name)
    except AttributeError as error:
        text = str(error).replace("`np.", "`dp.").replace("`numpy.", "`dp.").partition("\n")
        about = text[2] if text[0].startswith("module") else text[0]
        return about.partition(". The aliases")[0] or None
    return None


def __getattr__(name: str) -> Any:
    reason = _REASONS.get(name) or (None if name.startswith("_") else _removed(name))
    because = "" if reason is None else f": {reason}"
    raise AttributeError(f"module 'dparray' has no attribute {name!r}{because}")
