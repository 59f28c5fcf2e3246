"""Execute Keras' NumPy backend with dparray instead of NumPy.

Keras chooses its backend from a list of names, so that it is told ``numpy``. An importer then
executes the files of that backend, those of the Keras that is installed, with another ``import``:
``numpy`` is dparray with NumPy behind it, and ``jax``, of which the backend uses four functions, is
`dparray.plaidml.keras.windows`. The files ``random`` and ``image`` compute on the host.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray.gradients import stop_gradient
from dparray.gradients.traced import Traced
from dparray.plaidml.keras import training, windows

_BACKEND = "keras.src.backend.numpy"
_ON_HOST = {"random", "image"}
_UNCHANGED = {"trainer", "export", "layer"}
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all", "std", "var", "argmax", "argmin")

#: Arrays, and those that a transformation follows.
_ARRAYS = (ndarray, Traced)

_finders: list[_Finder] = []


def is_installed() -> bool:
    """Return whether Keras computes on dparray."""
    return bool(_finders)


def install(device: Any) -> Any:
    """Import Keras with its backend replaced; return the module."""
    finder = _Finder(device)
    before = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "numpy"
    sys.meta_path.insert(0, finder)
    try:
        keras = importlib.import_module("keras")
    except BaseException:
        sys.meta_path.remove(finder)
        if before is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = before
        raise
    training.make_trainable(importlib.import_module(f"{_BACKEND}.trainer"), finder)
    rules = keras.regularizers
    rules.L1L2.__call__ = lambda self, x: rules.L1(self.l1)(x) + rules.L2(self.l2)(x)  # not +=
    _keep_result_types(importlib.import_module("keras.src.backend.common.dtypes"))
    finder.array_module.config.host_operands = "copy"
    _finders.append(finder)
    return keras


def _keep_result_types(dtypes: Any) -> None:
    """Keep the results of Keras' promotion, which each operation computes."""
    result_type = dtypes.result_type
    kept = functools.cache(lambda floatx, *given: result_type(*given))
    dtypes.result_type = functools.wraps(result_type)(
        lambda *given: kept(dtypes.config.floatx(), *given)
    )


def _is_tensor(x: Any) -> bool:
    return isinstance(x, ndarray | Traced | np.ndarray | np.generic)


def _is_tensor_or_variable(x: Any) -> bool:
    return _is_tensor(x) or getattr(x, "_is_dparray_variable", False)


def _to_host(x: Any) -> Any:
    if isinstance(x, ndarray):
        return x.asnumpy()
    return type(x)(map(_to_host, x)) if type(x) in (list, tuple) else x


class _Namespace(ModuleType):
    """A module with dparray's functions, and NumPy's with copies where dparray has none."""

    def __init__(self, name: str, finder: _Finder, first: Any, second: Any) -> None:
        super().__init__(name)
        self._finder, self._first, self._second = finder, first, second

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._first, name, None)
        is_ours = value is not None
        if not is_ours:
            value = getattr(self._second, name)
        if callable(value) and not isinstance(value, type):
            value = self._finder.placing(value) if is_ours else self._finder.on_host(value)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import finder that executes the files of Keras' NumPy backend with other imports."""

    def __init__(self, device: Any) -> None:
        self.device = device
        # The namespace of user programs; it imports this module, so it is looked up at run time.
        self.array_module: Any = sys.modules[__name__.partition(".")[0]]
        self.numpy = self._numpy()
        self.jax = windows.jax_module(self.unwrapped)

    # -- values ------------------------------------------------------------------------------------

    def place(self, x: Any) -> Any:
        """Copy host arrays to the device."""
        if isinstance(x, np.ndarray | np.generic):
            return self.array_module.asarray(x, device=self.device)
        return type(x)(map(self.place, x)) if type(x) in (list, tuple) else x

    def unwrapped(self, x: Any) -> Any:
        """Return the array of a Keras variable; copy host arrays to the device."""
        if isinstance(x, np.ndarray):
            return self.place(x)
        if getattr(x, "_is_dparray_variable", False):
            return x.value
        if type(x) in (list, tuple) and any(
            isinstance(each, np.ndarray | ndarray | Traced) or hasattr(each, "_is_dparray_variable")
            for each in x
        ):
            return type(x)(map(self.unwrapped, x))
        return x

    def placing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that host arrays and variables become arrays."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            named = {name: self.unwrapped(x) for name, x in named.items()}
            return function(*map(self.unwrapped, arguments), **named)

        return call

    def taking_numbers(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its first argument may be a number."""
        return lambda x, *arguments, **named: function(self.asarray(x), *arguments, **named)

    def taking_lists(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its first argument may be a list, as Keras' losses are."""

        @functools.wraps(function)
        def call(x: Any, *arguments: Any, **named: Any) -> Any:
            x = self.array(x) if type(x) in (list, tuple) else x
            return function(x, *arguments, **named)

        return call

    def on_host(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that it computes on the host, with copies in both directions."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            named = {name: _to_host(x) for name, x in named.items()}
            return self.place(function(*map(_to_host, arguments), **named))

        return call

    def array(self, x: Any, dtype: Any = None, copy: Any = None, **_: Any) -> Any:
        """Return an array; a list may hold arrays."""
        dp, x = self.array_module, self.unwrapped(x)
        if type(x) in (list, tuple) and any(isinstance(each, _ARRAYS) for each in x):
            result = dp.stack([dp.asarray(each) for each in x])
            return result if dtype is None else result.astype(dtype)
        return dp.array(x, dtype=dtype, device=None if isinstance(x, _ARRAYS) else self.device)

    def asarray(self, x: Any, dtype: Any = None, **_: Any) -> Any:
        """Return an array, without a copy if nothing must be converted."""
        if not isinstance(x, _ARRAYS):
            return self.array(x, dtype)
        return x if dtype is None else self.array_module.astype(x, dtype)

    # -- modules -----------------------------------------------------------------------------------

    def _numpy(self) -> Any:
        dp = self.array_module
        result = _Namespace("numpy", self, dp, np)
        for name in ("random", "dtype", "finfo", "iinfo", "issubdtype", "generic"):
            setattr(result, name, getattr(np, name))
        vars(result).update(ndarray=ndarray, array=self.array, asarray=self.asarray, lib=dp.lib)
        for name in ("arange", "eye", "full", "identity", "linspace", "ones", "tri", "zeros"):
            made = functools.partial(getattr(dp, name), device=self.device)
            setattr(result, name, self.placing(made))
        # Keras traces functions with empty arrays, whose labels must be valid.
        vars(result)["empty"] = result.zeros
        for name in ("empty_like", "full_like", "ones_like", "zeros_like"):
            setattr(result, name, self.taking_numbers(getattr(dp, name)))
        for name in ("linalg", "fft"):
            setattr(
                result,
                name,
                _Namespace(f"numpy.{name}", self, getattr(dp, name), getattr(np, name)),
            )
        return result

    @functools.cached_property
    def scipy(self) -> Any:
        """SciPy, with dparray's special functions."""
        none = ModuleType("none")
        result: Any = ModuleType("scipy")
        for name in ("special", "signal", "linalg"):
            ours = self.array_module.special if name == "special" else none
            theirs = importlib.import_module(f"scipy.{name}")
            setattr(result, name, _Namespace(f"scipy.{name}", self, ours, theirs))
        return result

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the files of the backend, and no others."""
        if name != _BACKEND and not name.startswith(f"{_BACKEND}."):
            return None
        spec: Any = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and name.rpartition(".")[2] not in _UNCHANGED:
            spec.inner, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: Any) -> None:
        """Let Python create the module."""

    def exec_module(self, module: Any) -> None:
        """Execute a file of the backend."""
        name = module.__name__
        last = name.rpartition(".")[2]
        if last not in _ON_HOST:
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._imported}
        exec(module.__spec__.inner.get_code(name), module.__dict__)
        if last in _ON_HOST:
            self._move_to_host(module)
        if last == "core":
            self._amend(module)
        if last == "nn":
            module.one_hot = self._one_hot(module.one_hot)
        if hasattr(module, "is_tensor"):
            # A layer's kernel that is no tensor would be copied to the host and back.
            module.is_tensor = _is_tensor_or_variable if last == "nn" else _is_tensor
        if name == f"{_BACKEND}.numpy":
            for each in _REDUCTIONS:
                setattr(module, each, self.taking_lists(getattr(module, each)))

    def _imported(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """Import as Python does, except for the modules that are replaced."""
        if name == "numpy":
            return self.numpy
        if name == "jax":
            return self.jax
        if name.startswith("keras.src.backend.jax"):
            return SimpleNamespace(fft=self._fft("fft"), fft2=self._fft("fft2"))
        if name == "scipy.linalg":
            return self.scipy
        if name == "keras.src.utils.module_utils" and "scipy" in (fromlist or ()):
            return SimpleNamespace(scipy=self.scipy)
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _one_hot(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``one_hot`` as a comparison, which does not read its labels on the host."""
        dp = self.array_module

        @functools.wraps(original)
        def one_hot(
            x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
        ) -> Any:
            if sparse or not num_classes:
                return original(x, num_classes, axis, dtype, sparse)
            x = dp.expand_dims(self.asarray(x), axis)
            shape = [1] * x.ndim
            shape[axis] = num_classes
            labels = dp.reshape(dp.arange(num_classes, sycl_queue=x.queue), shape)
            return dp.astype(x == labels, dtype or "float32")

        return one_hot

    def _fft(self, name: str) -> Callable[..., Any]:
        def transform(x: Any) -> Any:
            result = getattr(self.array_module.fft, name)(x[0] + 1j * x[1])
            return result.real, result.imag

        return transform

    def _move_to_host(self, module: Any) -> None:
        for name, function in list(vars(module).items()):
            if not isinstance(function, FunctionType):
                continue
            if function.__module__ != module.__name__:
                # Functions that the file imports from the other files take and return host arrays.
                setattr(module, name, functools.wraps(function)(_host_result(function)))
            elif not name.startswith("_"):
                setattr(module, name, self.on_host(function))

    def _amend(self, core: Any) -> None:
        """Replace the tensor class, and convert values at the boundaries of the module."""
        dp, variable = self.array_module, core.Variable
        original, standard = core.convert_to_tensor, core.standardize_dtype
        scatter = core.scatter_update

        def assign(self_: Any, value: Any) -> None:
            self_._value = dp.asarray(self.unwrapped(value)).astype(self_._dtype)

        @functools.wraps(original)
        def convert(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
            if not sparse and not ragged:
                if isinstance(x, _ARRAYS):
                    if dtype is None or x.dtype == (target := standard(dtype)):
                        return x
                    return dp.astype(x, target)
                if type(x) in (list, tuple) and any(isinstance(i, (*_ARRAYS, variable)) for i in x):
                    x = dp.stack([dp.asarray(self.unwrapped(each)) for each in x])
                    return x if dtype is None else convert(x, dtype)
                if isinstance(x, np.ndarray | np.generic) and dtype is None:
                    return dp.asarray(x, device=self.device)
            return original(x, dtype, sparse, ragged)

        @functools.wraps(scatter)
        def scatter_update(inputs: Any, *arguments: Any, **named: Any) -> Any:
            # The original writes to its inputs, so host arrays are copied first.
            return scatter(dp.array(convert(inputs), copy=True), *arguments, **named)

        variable._is_dparray_variable = True
        variable.__dparray_function__ = lambda _, f, values, named: self.placing(f)(
            *values, **named
        )
        variable._direct_assign = assign
        variable.__array__ = lambda self_, dtype=None, copy=None: np.asarray(
            _to_host(self_.value), dtype
        )
        core.convert_to_tensor = convert
        core.scatter_update = scatter_update
        core.stop_gradient = stop_gradient
        core.cast = lambda x, dtype: convert(x, dtype=dtype)
        core.convert_to_numpy = lambda x: np.array(_to_host(self.unwrapped(x)))


def _host_result(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **named: _to_host(function(*arguments, **named))
