"""Provide the module ``numba_dpex``, so that programs written for it run with dparray's kernels.

It is used where the package of that name is not installed. It has the names that programs use: the
decorators, the launches, the kernel language, the types of signatures and the exceptions. ``dpjit``
and ``prange`` are ``dp.jit`` and ``dp.prange``. The kernel language up to 0.21, without a work-item
parameter, is included.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from dparray import kernel_api
from dparray._imports import StandIn
from dparray._kernel import numba_dpex_calls as calls
from dparray._kernel.decorators import device_func
from dparray.exceptions import UnsupportedFeatureError
from dparray.kernel_api import work_items

_NAME = "numba_dpex"


def _simulated(kernel_fn: Any, index_range: Any, *kernel_args: Any) -> None:
    """Run a kernel in plain Python, as ``numba_dpex.kernel_api.call_kernel`` does."""
    # numba-dpex runs one work-item after another, so all may write the same element.
    sys.modules["dparray"].simulate(kernel_fn, index_range, *kernel_args, races="same-value")


# --- its types ------------------------------------------------------------------------------------


def _numba() -> Any:
    """Return Numba, whose types signatures have.

    Raises:
        UnsupportedFeatureError: it is not installed.
    """
    try:
        return importlib.import_module("numba")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise UnsupportedFeatureError(
            "signatures have types of Numba, which is not installed: pip install numba; or leave "
            "the signature out, kernels are compiled for the types of each launch"
        ) from None


def _array_type(
    ndim: int,
    layout: str = "C",
    dtype: Any = None,
    usm_type: str = "device",
    device: Any = None,
    queue: Any = None,
    readonly: bool = False,
    name: str | None = None,
    aligned: bool = True,
    addrspace: int = 1,
) -> Any:
    """Return the type of an array in signatures, which does not include its device."""
    float64 = _numba().types.float64
    array = importlib.import_module("dparray._kernel.numba_signatures").DeviceArray
    return array(float64 if dtype is None else dtype, ndim, layout, int(addrspace))


def _local_accessor_type(ndim: int, dtype: Any) -> Any:
    """Return the type of a local accessor in signatures."""
    numba = _numba()
    element = dtype if isinstance(dtype, numba.types.Type) else numba.from_dtype(dtype)
    return importlib.import_module("dparray._kernel.numba_signatures").local_array(element, ndim)


_ARRAY_TYPES = {
    "Array": _array_type,
    "DpnpNdArray": _array_type,
    "USMNdArray": _array_type,
    "usm_ndarray": _array_type,
}

# --- its exceptions -------------------------------------------------------------------------------

_EXCEPTIONS = (
    "ExecutionQueueInferenceError",
    "IllegalRangeValueError",
    "InvalidKernelLaunchArgsError",
    "InvalidKernelSpecializationError",
    "KernelHasReturnValueError",
    "MissingSpecializationError",
    "UnknownGlobalRangeError",
    "UnmatchedNumberOfRangeDimsError",
    "UnreachableError",
    "UnsupportedBackendError",
    "UnsupportedGroupWorkItemSizeError",
    "UnsupportedKernelArgumentError",
    "UnsupportedNumberOfRangeDimsError",
    "UnsupportedWorkItemSizeError",
)
_exceptions = {
    name: type(name, (Exception,), {"__module__": f"{_NAME}.core.exceptions"})
    for name in _EXCEPTIONS
}

# --- its modules ----------------------------------------------------------------------------------

_language = {name: getattr(kernel_api, name) for name in kernel_api.__all__}

# The kernel language up to 0.21. The flags of a fence are OpenCL's bits; all fences order both
# kinds of memory.
_WITHOUT_ITEM: dict[str, Any] = {
    "CLK_GLOBAL_MEM_FENCE": 2,
    "CLK_LOCAL_MEM_FENCE": 1,
    "DEFAULT_LOCAL_SIZE": [],
    "GLOBAL_MEM_FENCE": 2,
    "LOCAL_MEM_FENCE": 1,
    "func": device_func,
    **{
        name: getattr(work_items, name)
        for name in work_items.__all__
        if not name.endswith("_atomically")
    },
}
_REPLACED_MEMBERS = {
    "get_work_dim": "item.dimensions",
    "dppy": "numba_dpex",
    "offload_to_sycl_device": "the queue of the arrays, on which kernels run",
    "reduce": "dparray.sum and related functions, or reduce_over_group(group, value) in a kernel",
    "max": "AtomicRef(array, index).fetch_max(value)",
    "min": "AtomicRef(array, index).fetch_min(value)",
    "compare_and_swap": "AtomicRef(array, index).compare_exchange(expected, value)",
    "static_alloc": "LocalArray(shape, dtype)",
}

#: The members of each module. A string names the module of dparray or Numba in which a name is
#: looked up at its first use, which imports Numba.
_MEMBERS: dict[str, dict[str, Any]] = {
    _NAME: {
        "NdRange": kernel_api.NdRange,
        "Range": kernel_api.Range,
        "__version__": "0.23.0+dparray",
        "call_kernel": calls.call_kernel,
        "call_kernel_async": calls.call_kernel_async,
        "device_func": device_func,
        "dpjit": ("dparray._jit.function", "jit"),
        "kernel": calls.kernel,
        "prange": ("dparray._jit.function", "prange"),
        **_ARRAY_TYPES,
        **_WITHOUT_ITEM,
    },
    f"{_NAME}.atomic": {"add": work_items.add_atomically, "sub": work_items.sub_atomically},
    f"{_NAME}.local": {"array": kernel_api.LocalArray},
    f"{_NAME}.private": {"array": kernel_api.PrivateArray},
    f"{_NAME}.kernel_api": {**_language, "call_kernel": _simulated},
    f"{_NAME}.kernel_api.memory_enums": {
        name: _language[name] for name in ("AddressSpace", "MemoryOrder", "MemoryScope")
    },
    f"{_NAME}.kernel_api_impl": {},
    f"{_NAME}.kernel_api_impl.spirv": {},
    f"{_NAME}.kernel_api_impl.spirv.target": {"SPIRV_TARGET_NAME": "spirv"},
    f"{_NAME}.core": {},
    f"{_NAME}.core.exceptions": _exceptions,
    f"{_NAME}.core.types": _ARRAY_TYPES,
    f"{_NAME}.core.types.kernel_api": {},
    f"{_NAME}.core.types.kernel_api.index_space_ids": {
        name: ("dparray._kernel.numba_signatures", name)
        for name in ("GroupType", "ItemType", "NdItemType")
    },
    f"{_NAME}.core.types.kernel_api.local_accessor": {"LocalAccessorType": _local_accessor_type},
}
# Modules that also have the names of Numba's types, such as int32.
_WITH_NUMBA_TYPES = frozenset({_NAME, f"{_NAME}.core.types"})


class _Module(ModuleType):
    """A module of ``numba_dpex``; names that need Numba are looked up at their first use."""

    def __getattr__(self, name: str) -> Any:
        name_here = self.__name__
        found = _MEMBERS[name_here].get(name)
        if found is not None:
            module, member = found
            value = getattr(importlib.import_module(module), member)
        elif f"{name_here}.{name}" in _MEMBERS:
            value = importlib.import_module(f"{name_here}.{name}")
        elif name_here in _WITH_NUMBA_TYPES and not name.startswith("_"):
            types = importlib.import_module("numba.core.types")
            value = types if name == "types" else getattr(types, name, None)
            if value is None:
                raise AttributeError(_absence(name_here, name))
        else:
            raise AttributeError(_absence(name_here, name))
        setattr(self, name, value)
        return value


def _absence(module: str, name: str) -> str:
    if name in _REPLACED_MEMBERS:
        return f"dparray's {module} has no {name!r}: write {_REPLACED_MEMBERS[name]}"
    there = sorted(known for known in _MEMBERS[module] if not known.startswith("_"))
    return f"dparray's {module} has no {name!r}; it has {', '.join(there) or 'modules only'}"


def _fill(module: ModuleType) -> None:
    for name, value in _MEMBERS[module.__name__].items():
        if not isinstance(value, tuple):
            setattr(module, name, value)


stand_in = StandIn(_MEMBERS.__contains__, _fill, lambda name: _Module(name, __doc__))


def make_module(name: str) -> ModuleType:
    """Return the module that ``import numba_dpex`` returns; its submodules are found later."""
    spec = stand_in.find_spec(name)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    _fill(module)
    return module


def install() -> None:
    """Make ``import numba_dpex`` find the module. Cheap and idempotent."""
    stand_in.install()
