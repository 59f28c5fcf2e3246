"""dparray: data-parallel arrays and kernels in Python, where compute follows data.

An array carries the queue it was allocated on; every operation and every kernel runs on the queue
of its inputs. Nothing is defined here: this module only gathers the public names.
"""

from dparray import _runtime as _runtime
from dparray import _startup as _startup

__version__ = "0.1.0"

_runtime.prepare_driver()

# Without the stack, only the command `dparray` starts, to say what is broken.
with _startup.explained():
    from numpy import (
        bool_,
        cdouble,
        complex64,
        complex128,
        complexfloating,
        csingle,
        double,
        dtype,
        e,
        errstate,
        euler_gamma,
        float16,
        float32,
        float64,
        floating,
        generic,
        get_printoptions,
        half,
        index_exp,
        inexact,
        inf,
        int8,
        int16,
        int32,
        int64,
        int_,
        integer,
        intp,
        nan,
        ndindex,
        newaxis,
        number,
        pi,
        printoptions,
        s_,
        set_printoptions,
        signedinteger,
        single,
        uint8,
        uint16,
        uint32,
        uint64,
        uintp,
        unsignedinteger,
    )
    from numpy import bool_ as bool

    from dparray import _protocols as _protocols
    from dparray import algorithms, config, exceptions, memory
    from dparray import device as device
    from dparray import fft as fft
    from dparray import linalg as linalg
    from dparray import random as random
    from dparray import testing as testing
    from dparray._array import ndarray
    from dparray._calculus import *
    from dparray._control import *
    from dparray._creation import *
    from dparray._editing import *
    from dparray._elementwise import *
    from dparray._grids import *
    from dparray._indexing import *
    from dparray._info import *
    from dparray._io import *
    from dparray._kernel_makers import elementwise, reduction
    from dparray._manipulation import *
    from dparray._numeric import *
    from dparray._products import *
    from dparray._reductions import *
    from dparray._searching import *
    from dparray._sets import *
    from dparray._signal import *
    from dparray._sorting import *
    from dparray._statistics import *
    from dparray.device import (
        Device,
        default_device,
        devices,
        set_default_device,
        use_device,
    )
    from dparray.exceptions import *
    from dparray.explain import Explanation, explain
    from dparray.kernel import call_kernel, call_kernel_async, device_func, kernel
    from dparray.kernel_api import *
    from dparray.notebook import load_ipython_extension, unload_ipython_extension
    from dparray.simulate import simulate
