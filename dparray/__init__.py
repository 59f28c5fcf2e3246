"""dparray: data-parallel arrays and kernels in Python, where compute follows data.

An array carries the queue it was allocated on; every operation and every kernel runs on the queue
of its inputs; `to_device` alone moves data.

- Arrays: `asarray`, `zeros`, `arange`, ... take `device=`; `x.asnumpy()` copies to the host.
- Functions: NumPy's, by NumPy's names; `linalg`, `fft`, `random` and `special` are modules.
- Kernels: decorate a Python function with `kernel`, launch it with `call_kernel` and a `Range`.
- Tools: `explain(x)` shows how an expression runs, `profile()` records a block,
  `simulate(kernel, ...)` finds races; options are in `config`.

The page of a function is `help(dparray.sum)`; the commands are listed by `dparray --help`.
"""

import builtins as _builtins
import sys as _sys
import typing as _typing
from pathlib import Path as _Path

_folder = _Path(__file__).parent
if not (_folder / "kernels").is_dir():
    # A clone keeps its device code beside the package; only a wheel has it inside.
    __path__.append(str(_folder.parent))

from dparray._runtime import startup as _startup
from dparray import _driver

__version__ = "0.1.0"

_driver.prepare()

# Without the stack, only the command `dparray` starts, to say what is broken.
with _startup.explained():
    from dparray import _imports, _satellites
    from dparray._functions import missing_names as _missing_names
    from dparray._functions import public as _boundary
    from dparray._functions import single_precision as _single_precision
    from numpy import (
        bool_ as bool,
        bool_ as bool_,
        cdouble as cdouble,
        complex64 as complex64,
        complex128 as complex128,
        complexfloating as complexfloating,
        csingle as csingle,
        double as double,
        dtype as dtype,
        e as e,
        errstate as errstate,
        euler_gamma as euler_gamma,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        floating as floating,
        generic as generic,
        get_printoptions as get_printoptions,
        half as half,
        index_exp as index_exp,
        inexact as inexact,
        inf as inf,
        int8 as int8,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        int_ as int_,
        integer as integer,
        intp as intp,
        nan as nan,
        ndindex as ndindex,
        newaxis as newaxis,
        number as number,
        pi as pi,
        printoptions as printoptions,
        s_ as s_,
        set_printoptions as set_printoptions,
        signedinteger as signedinteger,
        single as single,
        uint8 as uint8,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
        uintp as uintp,
        unsignedinteger as unsignedinteger,
        False_ as False_,
        ScalarType as ScalarType,
        True_ as True_,
        base_repr as base_repr,
        binary_repr as binary_repr,
        byte as byte,
        format_float_positional as format_float_positional,
        format_float_scientific as format_float_scientific,
        geterr as geterr,
        intc as intc,
        iterable as iterable,
        little_endian as little_endian,
        long as long,
        longlong as longlong,
        sctypeDict as sctypeDict,
        seterr as seterr,
        short as short,
        typecodes as typecodes,
        typename as typename,
        ubyte as ubyte,
        uint as uint,
        uintc as uintc,
        ulong as ulong,
        ulonglong as ulonglong,
        ushort as ushort,
    )

    from dparray import (
        algorithms as algorithms,
        config as config,
        device as device,
        exceptions as exceptions,
        lib as lib,
        linalg as linalg,
        memory as memory,
    )
    from dparray._evaluate import fork_safety as _forks
    from dparray._functions import install_fastpath as _install_fastpath
    from dparray._functions import constructor as _constructor
    from dparray._functions import other_libraries as _other_libraries
    from dparray._functions import protocols as _protocols
    from dparray._functions import ufunc_methods as _ufunc_methods

    from dparray._array import (
        asynchronous as _asynchronous,
        map as _map,
        operators as _operators,
        printing as _printing,
        subscript as _subscript,
        transfer as _transfer,
    )
    from dparray._array.ndarray import ndarray as ndarray
    from dparray._functions.attributes import *
    from dparray._functions.calculus import *
    from dparray._functions.evaluation import *
    from dparray._functions.conversion import *
    from dparray._functions.cumulative import *
    from dparray._functions.histograms import *
    from dparray._functions.joining import *
    from dparray._functions.logic import *
    from dparray._functions.matrices import *
    from dparray._functions.moments import *
    from dparray._functions.nan_reductions import *
    from dparray._functions.padding import *
    from dparray._functions.quantiles import *
    from dparray._functions.rearranging import *
    from dparray._functions.ranges import *
    from dparray._functions.windows import *
    from dparray._functions.creation import *
    from dparray._functions.methods import *
    from dparray._functions.elementwise import *
    from dparray._functions.grids import *
    from dparray._functions.indexing import *
    from dparray._functions.inspection import *
    from dparray._functions.io import *
    from dparray._functions.user_functions import (
        elementwise as elementwise,
        reduction as reduction,
    )
    from dparray._functions.vectorized import vectorize as vectorize
    from dparray._functions.implementing import implement as implement
    from dparray._functions.manipulation import *
    from dparray._functions.bits import *
    from dparray._functions.convolution import *
    from dparray._functions.mathematics import *
    from dparray._functions.polynomials import *
    from dparray._functions.products import *
    from dparray._functions.einstein import *
    from dparray._functions.reductions import *
    from dparray._functions.searching import *
    from dparray._functions.sets import *
    from dparray._functions.functional import *
    from dparray._functions.sorting import *
    from dparray._functions.statistics import *
    from dparray._placement import (
        get_coerced_usm_type as get_coerced_usm_type,
        get_execution_queue as get_execution_queue,
    )
    from dparray.device import (
        Device as Device,
        default_device as default_device,
        devices as devices,
        is_available as is_available,
        set_default_device as set_default_device,
        use_device as use_device,
    )
    from dparray.exceptions import *
    from dparray._kernel.function import KernelFunction as KernelFunction
    from dparray._kernel.launch import (
        call_kernel as call_kernel,
        call_kernel_async as call_kernel_async,
    )
    from dparray._kernel.raw import raw_kernel as raw_kernel
    from dparray._kernel.decorators import device_func as device_func, kernel as kernel
    from dparray._jit.function import JitFunction as JitFunction, jit as jit, prange as prange
    from dparray._runtime.event import Event as Event
    from dparray._runtime.fallback import FallbackWarning as FallbackWarning
    from dparray.kernel_api import *
    from dparray._notebook import shown as _shown

    _satellites.provider("numba_dpex").install()
    _other_libraries.install()
    _install_fastpath.install_if_built()

    # Public functions let only our errors out; inside, functions call each other directly.
    for _module in (linalg, lib.stride_tricks):
        _boundary.guard(_module, _module.__all__)
    _boundary.guard(_sys.modules[__name__])
    _single_precision.take_methods()

    # Modules of definition are private: names say `dparray`.
    for _name, _value in list(globals().items()):
        if (
            not _name.startswith("_")
            and callable(_value)
            and getattr(_value, "__module__", "").startswith("dparray._")
        ):
            _value.__module__ = __name__

    # Parts that many programs do not use are imported when they are first asked for.
    if _typing.TYPE_CHECKING:
        from dparray import (
            fft as fft,
            gradients as gradients,
            onnx as onnx,
            plaidml as plaidml,
            random as random,
            sharding as sharding,
            special as special,
            testing as testing,
            tilelang as tilelang,
        )
        from dparray._explain.explain import Explanation as Explanation, explain as explain
        from dparray._notebook.cards import (
            load_ipython_extension as load_ipython_extension,
            unload_ipython_extension as unload_ipython_extension,
        )
        from dparray._profile.profile import profile as profile
        from dparray._profile.timer import timer as timer
        from dparray._scheduling.policy import (
            PlacedExpression as PlacedExpression,
            PolicyStep as PolicyStep,
            placement as placement,
        )
        from dparray._simulator.simulate import simulate as simulate
        from dparray.gradients.kernels import differentiable as differentiable
        from dparray.gradients.transforms import (
            checkpoint as checkpoint,
            custom_gradient as custom_gradient,
            grad as grad,
            hessian as hessian,
            hvp as hvp,
            jacobian as jacobian,
            jvp as jvp,
            linearize as linearize,
            stop_gradient as stop_gradient,
            value_and_grad as value_and_grad,
            vjp as vjp,
        )
        from dparray.sharding.distribute import distribute as distribute

    _later = {
        "fft": "dparray.fft",
        "random": "dparray.random",
        "special": "dparray.special",
        "testing": "dparray.testing",
        "Explanation": "dparray._explain.explain:",
        "explain": "dparray._explain.explain:",
        "load_ipython_extension": "dparray._notebook.cards:",
        "unload_ipython_extension": "dparray._notebook.cards:",
        "profile": "dparray._profile.profile:",
        "timer": "dparray._profile.timer:",
        "simulate": "dparray._simulator.simulate:",
        **_satellites.NAMES,
    }
    _this = _sys.modules[__name__]
    _imports.when_asked(_this, _later, _boundary.published, _missing_names.__getattr__)

#: The names of `from dparray import *`: no errors, and none of a built-in of Python.
__all__ = sorted(
    name
    for name, value in {**globals(), **globals().get("_later", {})}.items()
    if not name.startswith("_")
    and not hasattr(_builtins, name)
    and not (isinstance(value, type) and issubclass(value, BaseException))
)
