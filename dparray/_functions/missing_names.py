"""NumPy names that the namespace does not have, and the reasons.

``dp.char`` and similar names raise ``AttributeError``, as any missing name does; the message names
the alternative.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray.exceptions import DTypeError

_STRINGS = "arrays hold numbers, not strings; keep text in NumPy arrays on the host"
_DATES = "arrays hold numbers, not dates; convert them to numbers on the host"
_RECORDS = "arrays have no fields; keep an array for each field"
_LONG = "devices compute in 64 bits at most; use float64 or complex128"
_OBJECTS = "arrays hold numbers, not Python objects"
_MATRICES = "use an array of two dimensions, and @ for products"
_ITERATORS = "write it with whole arrays, or as a kernel: dp.kernel, dp.elementwise"

_REASONS = {
    **dict.fromkeys(("bytes_", "char", "character", "str_", "strings"), _STRINGS),
    **dict.fromkeys(("compare_chararrays", "str", "string_", "unicode_"), _STRINGS),
    **dict.fromkeys(("busday_count", "busday_offset", "busdaycalendar", "datetime64"), _DATES),
    **dict.fromkeys(("datetime_as_string", "datetime_data", "is_busday", "isnat"), _DATES),
    "timedelta64": _DATES,
    **dict.fromkeys(("flexible", "rec", "recarray", "record", "void"), _RECORDS),
    "format_parser": _RECORDS,
    **dict.fromkeys(("clongdouble", "complex256", "float128", "longdouble"), _LONG),
    **dict.fromkeys(("clongfloat", "longcomplex", "longfloat"), _LONG),
    **dict.fromkeys(("frompyfunc", "object_"), _OBJECTS),
    **dict.fromkeys(("asmatrix", "bmat", "mat", "matrix"), _MATRICES),
    **dict.fromkeys(("nditer", "nested_iters"), _ITERATORS),
    "fromregex": "read the text with NumPy and copy it to a device with dp.asarray",
    "dtypes": "the classes of dtypes are NumPy's: np.dtypes",
    "info": "write help(function)",
    "mintypecode": "write dp.result_type(*dtypes)",
    "ma": "use masks as arrays: dp.where, and where= in reductions",
    "memmap": "dp.load reads files through a bounded buffer",
    "polynomial": "use dp.polyfit, dp.polyval and dp.poly1d",
    **dict.fromkeys(("getbufsize", "setbufsize"), "computations do not use buffers"),
    **dict.fromkeys(("geterrcall", "seterrcall"), "devices report no floating-point errors"),
    **dict.fromkeys(("show_config", "show_runtime"), "run the command dparray info"),
    **dict.fromkeys(("add_docstring", "add_newdoc"), "write a docstring"),
    "byte_bounds": "x.usm_data is the memory of an array, x.nbytes its size",
    "DataSource": "open the file yourself, and pass it to dp.load or dp.loadtxt",
    **dict.fromkeys(("core", "ctypeslib", "f2py"), "it concerns NumPy's own memory; use numpy"),
    "get_include": "kernels are written in Python: dp.kernel",
    "typing": "annotate with dp.ndarray",
    "ufunc": "functions are Python functions; those that are ufuncs in NumPy have nin, nout",
    # Aliases of functions, including old names from NumPy.
    "in1d": "write dp.isin(x, y)",
    "row_stack": "write dp.vstack(arrays)",
    "to_numpy": "write dp.asnumpy(x)",
    "trapz": "write dp.trapezoid(y, x)",
    # Names from CuPy, JAX, PyTorch, numba-dpex and dpctl.
    "ElementwiseKernel": "decorate a function with @dp.elementwise",
    "fuse": "omit it: expressions are fused automatically, and dp.explain(x) shows how",
    "ReductionKernel": "decorate a function with @dp.reduction",
    **dict.fromkeys(
        ("cuda", "xpu", "mps", "backends"),
        "devices are dp.devices() and dp.Device(...), streams dp.Device(...).new_queue(); events "
        "are returned by dp.call_kernel, elapsed time is dp.timer; kernels are @dp.kernel",
    ),
    **dict.fromkeys(
        ("dpjit", "njit"),
        "write @dp.jit, with dp.prange for parallel loops",
    ),
    **dict.fromkeys(
        ("RawKernel", "RawModule"), "write dp.raw_kernel(source, name), in OpenCL C or SPIR-V"
    ),
    "parallel": "write @dp.jit, with dp.prange for parallel loops",
    **dict.fromkeys(
        ("vmap", "grad", "pmap"),
        "function transformations are not supported; use whole-array operations",
    ),
    **dict.fromkeys(("get_devices", "device_count", "local_devices"), "write dp.devices()"),
    **dict.fromkeys(("select_device", "SyclDevice"), "write dp.Device('cpu')"),
    **dict.fromkeys(("SyclQueue", "stream", "Stream"), "a new queue is dp.Device(...).new_queue()"),
    "get_default_memory_pool": (
        "use dp.memory.stats(), dp.memory.release(), dp.memory.set_limit(nbytes)"
    ),
    "get_default_pinned_memory_pool": "host memory is usm_type='host' at creation",
    "memoize": "use functools.cache; compiled kernels are cached already",
    **dict.fromkeys(("scatter_add", "segment_sum"), "write dp.add.at(x, index, values)"),
    **dict.fromkeys(("scatter_max", "segment_max"), "write dp.maximum.at(x, index, values)"),
    **dict.fromkeys(("scatter_min", "segment_min"), "write dp.minimum.at(x, index, values)"),
    "one_hot": "write index[:, None] == dp.arange(n)",
    "to_device": "write x.to_device(device)",
    "memset": "write x[...] = value",
    **dict.fromkeys(("profiler", "nvtx"), "write with dp.profile() as p: ...; print(p)"),
    **dict.fromkeys(
        ("stencil", "guvectorize"), "use slices of whole arrays, or write a @dp.kernel"
    ),
    "numba_dpex": "use its kernel language: @dp.kernel, dp.call_kernel, dp.Range, dp.NdRange",
    "ExternalStream": "arrays on a queue of another library: dp.asarray(x, sycl_queue=queue)",
    **dict.fromkeys(
        ("joint_reduce", "joint_any_of", "joint_all_of", "joint_none_of"),
        "let each work-item combine its elements in a loop, range(local_id, n, local_size), and "
        "the work-items of the group their results: dp.reduce_over_group, dp.any_of_group, ...",
    ),
    **dict.fromkeys(
        ("joint_inclusive_scan", "joint_exclusive_scan"),
        "scan in blocks: dp.inclusive_scan_over_group(group, value) for local_size elements, "
        "and dp.group_broadcast for the last; for whole arrays use dp.algorithms.inclusive_scan(x)",
    ),
    "fromDlpack": "write dp.from_dlpack(x)",
    "set_device": "write dp.set_default_device(device), or with dp.use_device(device):",
    **dict.fromkeys(
        ("get_global_id", "get_local_id", "get_group_id", "get_global_size", "get_local_size"),
        "the first parameter of a kernel is its work-item: item.get_id(0) of a dp.Range, "
        "item.get_global_id(0), item.get_local_id(0), item.get_group() of a dp.NdRange",
    ),
    **dict.fromkeys(
        ("barrier", "syncthreads"), "in a kernel, write dp.group_barrier(item.get_group())"
    ),
    "atomic": "in a kernel, write dp.AtomicRef(x, index).fetch_add(value)",
    "local": "give a kernel dp.LocalAccessor(shape, dtype) as an argument",
    "private": "in a kernel, write dp.PrivateArray(shape, dtype)",
    "func": "decorate a function that kernels call with @dp.device_func",
    **dict.fromkeys(("usm_ndarray", "Tensor"), "the class of arrays is dp.ndarray"),
    "as_usm_ndarray": "write dp.asarray(x)",
    "get_normalized_queue_device": "write dp.Device(device)",
    "synchronize_array_data": "write dp.synchronize(x)",
    "default_float_type": "write dp.__array_namespace_info__().default_dtypes()",
    **dict.fromkeys(
        ("lax", "fori_loop", "while_loop"),
        "write a Python loop over whole arrays, or a loop per element in a @dp.kernel",
    ),
    "scan": "write dp.cumulative_sum(x), or another cumulative function",
    **dict.fromkeys(
        ("compile", "make_jaxpr"), "array code is fused automatically; dp.explain(x) shows the plan"
    ),
    "cat": "write dp.concatenate(arrays, axis=0)",
    **dict.fromkeys(("mm", "bmm"), "write x @ y"),
    "rand": "write dp.random.rand(...), or rng.random(shape)",
    "randn": "write dp.random.randn(...), or rng.standard_normal(shape)",
    "sigmoid": "write dp.special.expit(x)",
    "relu": "write dp.maximum(x, 0)",
    "softmax": "write dp.special.softmax(x, axis)",
    "is_tensor": "write isinstance(x, dp.ndarray)",
    "get_array_module": "write x.__array_namespace__()",
    "device_put": "write dp.asarray(x, device=...), or x.to_device(device)",
    "device_get": "write dp.asnumpy(x)",
    "block_until_ready": "write dp.synchronize()",
    **dict.fromkeys(("tensor", "from_numpy", "as_tensor"), "write dp.asarray(x)"),
    "manual_seed": "write dp.random.seed(seed), or rng = dp.random.default_rng(seed)",
    **dict.fromkeys(
        ("autograd", "hessian", "jacfwd", "jacrev", "no_grad", "value_and_grad"),
        "automatic differentiation is not supported",
    ),
    **dict.fromkeys(("nn", "optim"), "layers are not supported; use whole-array operations"),
    "emath": "convert to complex first: x.astype('complex128')",
}


#: NumPy array attributes that dparray arrays do not have, and the reasons.
ATTRIBUTES = {
    "base": "dp.shares_memory(x, y) checks whether two arrays share memory",
    "byteswap": "devices have one byte order; write x.asnumpy().byteswap()",
    "ctypes": "the memory may be device-only; write x.asnumpy().ctypes",
    "data": "the memory may be device-only; write x.asnumpy().data",
    "dump": "write pickle.dump(x, file), or dp.save(file, x)",
    "dumps": "write pickle.dumps(x)",
    "getfield": "arrays have no fields; x.view(dtype) reinterprets the memory",
    "is_integer": "write x.item().is_integer()",
    "setfield": "arrays have no fields; x.view(dtype) reinterprets the memory",
    "setflags": "arrays are always writeable; copy the array to keep its values",
    "tostring": "write x.tobytes()",
    # Names from CuPy, JAX and PyTorch.
    **dict.fromkeys(
        ("cpu", "detach", "get", "numpy"), "write x.asnumpy(), which copies to the host and waits"
    ),
    **dict.fromkeys(("cuda", "to"), "write x.to_device(device), or x.astype(dtype)"),
    "clone": "write x.copy()",
    "numel": "write x.size",
    "dim": "write x.ndim",
    "permute": "write x.transpose(axes), or dp.permute_dims(x, axes)",
    "at": "arrays are mutable: x[index] = value; ufuncs have .at, as in dp.add.at(x, index, y)",
    "block_until_ready": "write dp.synchronize()",
    "set": "write x[...] = dp.asarray(values, device=x.device)",
    "stream": "the queue is x.queue",
    "unsqueeze": "write x[:, None], or dp.expand_dims(x, axis)",
    "float": "write x.astype('float32')",
    "double": "write x.astype('float64')",
    "half": "write x.astype('float16')",
    "int": "write x.astype('int32')",
    "long": "write x.astype('int64')",
    "type": "write x.dtype, or x.astype(dtype)",
    "contiguous": "write dp.ascontiguousarray(x)",
    **dict.fromkeys(("expand", "expand_as"), "write dp.broadcast_to(x, shape)"),
    "norm": "write dp.linalg.norm(x)",
    **dict.fromkeys(("is_cuda", "devices", "sharding"), "the device is x.device"),
    **dict.fromkeys(
        ("add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_"),
        "write x += y and the like, or x[...] = value",
    ),
    "toDlpack": "write x.__dlpack__(), or pass x to from_dlpack of the other library",
    "data_ptr": "write x.usm_data",
    "element_size": "write x.itemsize",
    "nelement": "write x.size",
    "masked_fill": "write dp.where(mask, value, x), or x[mask] = value",
    "gather": "write dp.take_along_axis(x, index, axis)",
    "scatter_": "write dp.put_along_axis(x, index, values, axis)",
    "index_select": "write dp.take(x, index, axis)",
    "topk": "write dp.top_k(x, k)",
    "relu": "write dp.maximum(x, 0)",
    "sigmoid": "write dp.special.expit(x)",
    **dict.fromkeys(("scatter_add", "scatter_add_", "index_add_"), "write dp.add.at(x, index, y)"),
    "view_as": "write x.reshape(y.shape)",
    "H": "write x.conj().mT",
    "softmax": "write dp.special.softmax(x, axis)",
    **dict.fromkeys(("matmul", "mm", "bmm"), "write x @ y"),
    **dict.fromkeys(
        ("requires_grad", "grad", "backward"), "automatic differentiation is not supported"
    ),
}


def _removed(name: str) -> str | None:
    """Return NumPy's own message about a name that it removed."""
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
    if name == "bfloat16":  # available if ml_dtypes is installed
        try:
            return _dtypes.bfloat16().type
        except DTypeError as error:
            raise AttributeError(str(error), name=name) from None
    reason = _REASONS.get(name) or (None if name.startswith("_") else _removed(name))
    because = "" if reason is None else f": {reason}"
    message = f"module 'dparray' has no attribute {name!r}{because}"
    # With name and obj, the interpreter suggests the name that was probably meant.
    raise AttributeError(message, name=name, obj=sys.modules["dparray"])
