"""NumPy's legacy interface: one generator for each queue, and functions that draw from it."""

from __future__ import annotations

import builtins
import inspect
import math
import secrets
from collections.abc import Callable
from typing import Any

from dparray._array.ndarray import ndarray
from dparray._functions.conversion import asarray
from dparray._placement import check_usm_type
from dparray.device import queue_of
from dparray.random.generator import Generator, key_of
from dparray.random.streams import Size

__all__ = [
    "RandomState",
    "beta",
    "binomial",
    "bytes",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "get_state",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_integers",
    "random_sample",
    "ranf",
    "rayleigh",
    "sample",
    "seed",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]


def default_rng(
    seed: Any = None,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> Generator:
    """Create a random number generator.

    Args:
        seed: an integer, a list of integers or a ``numpy.random.SeedSequence``; random by default.
            The same seed gives the same numbers on every device. A generator is returned unchanged.
        device: the device to generate on; the default device if not given.
        usm_type: ``"device"`` (the default), ``"shared"`` or ``"host"``.
        sycl_queue: the queue, as an alternative to ``device``.

    Raises:
        ArgumentError: the seed is negative or not an integer.
        DeviceError: the device does not exist, or ``device`` and ``sycl_queue`` disagree.

    Example:
        >>> rng = dp.random.default_rng(0)
        >>> rng.integers(10, size=5).shape
        (5,)
    """
    if isinstance(seed, Generator):
        return seed
    key = key_of(seed)
    kind = check_usm_type("device" if usm_type is None else usm_type)
    return Generator(key, queue_of(device, sycl_queue), kind)


class RandomState(Generator):
    """A generator with the methods that NumPy programs used before ``default_rng``.

    Args:
        seed, device, usm_type, sycl_queue: see :func:`default_rng`.

    It draws the numbers of :class:`Generator`, not those of NumPy.

    Example:
        >>> state = dp.random.RandomState(0)
        >>> state.randn(2, 3).shape
        (2, 3)
    """

    #: #: NumPy's legacy interface allows a ``high`` below ``low``.
    _WIDTHS = -math.inf, math.inf, True, True

    def __init__(
        self,
        seed: Any = None,
        *,
        device: Any = None,
        usm_type: str | None = None,
        sycl_queue: Any = None,
    ) -> None:
        kind = check_usm_type("device" if usm_type is None else usm_type)
        super().__init__(key_of(seed), queue_of(device, sycl_queue), kind)

    def seed(self, seed: Any = None) -> None:
        """Restart the sequence from a seed."""
        key = key_of(seed)
        with self._lock:
            self._key, self._position = key, 0

    def get_state(self) -> tuple[str, int, int]:
        """Return the argument of :meth:`set_state`: the kind, the seed and the position."""
        return "Philox", self._key, self._position

    def set_state(self, state: tuple[str, int, int]) -> None:
        """Continue from the position at which :meth:`get_state` was called."""
        with self._lock:
            _, self._key, self._position = state

    def rand(self, *shape: int, dtype: Any = None) -> ndarray:
        """Draw numbers from 0 up to but excluding 1; the positional arguments are the shape."""
        return self.random(shape, dtype)

    def randn(self, *shape: int, dtype: Any = None) -> ndarray:
        """Draw normally distributed numbers; the positional arguments are the shape."""
        return self.standard_normal(shape, dtype)

    def randint(
        self, low: Any, high: Any = None, size: Size = None, dtype: Any = "int64"
    ) -> ndarray:
        """Draw integers from ``low`` up to, excluding, ``high``; see :meth:`Generator.integers`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Size = None) -> ndarray:
        """Draw integers from ``low`` up to and including ``high``, or from 1 to ``low``."""
        low, high = (1, low) if high is None else (low, high)
        return self.integers(low, high, size, endpoint=True)

    def random_sample(self, size: Size = None) -> ndarray:
        """Draw numbers from 0 up to but excluding 1."""
        return self.random(size)

    ranf = sample = random_sample


_shared: dict[Any, RandomState] = {}
_shared_seed: list[int] = []


def _shared_generator(queue: Any) -> RandomState:
    """Return the generator that the module's functions use on a queue."""
    if not _shared_seed:
        _shared_seed.append(secrets.randbits(64))
    generator = _shared.get(queue)
    if generator is None:
        generator = _shared.setdefault(queue, RandomState(_shared_seed[0], sycl_queue=queue))
    return generator


def seed(seed: Any = None) -> None:
    """Seed the generator that the module's functions use.

    Example:
        >>> dp.random.seed(3)
        >>> first = dp.random.rand(4)
        >>> dp.random.seed(3)
        >>> dp.array_equal(first, dp.random.rand(4))
        True
    """
    key = key_of(seed)
    _shared.clear()
    _shared_seed[:] = [key]


def get_state() -> tuple[str, int, int]:
    """Return the state of the module's generator on the default device.

    Example:
        >>> state = dp.random.get_state()
        >>> first = dp.random.rand(3)
        >>> dp.random.set_state(state)
        >>> dp.array_equal(first, dp.random.rand(3))
        True
    """
    return _shared_generator(queue_of(None, None)).get_state()


def set_state(state: tuple[str, int, int]) -> None:
    """Continue from a state that :func:`get_state` returned.

    Example:
        >>> dp.random.set_state(dp.random.get_state())
    """
    _shared_generator(queue_of(None, None)).set_state(state)


_PLACEMENT = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    for name, annotation in (("device", "Any"), ("usm_type", "str | None"), ("sycl_queue", "Any"))
)

_TEMPLATE = """{summary}

    Calls the method of :class:`Generator` on a generator that all callers share: that of the queue
    that ``device`` or ``sycl_queue`` names, of the arrays among the arguments, or of the default
    device. ``usm_type`` is that of the result.

    Example:
        >>> dp.random.{name}({arguments}).shape[0]
        4
    """


def _shared_function(name: str, arguments: str) -> Callable[..., ndarray]:
    """Return a function that calls a method of the shared generator on the default device.

    If an argument is an array, the generator of its queue is used.

    Args:
        name: the name of the method.
        arguments: the arguments of the example in the docstring.
    """
    method = getattr(RandomState, name)

    def function(
        *args: Any,
        device: Any = None,
        usm_type: str | None = None,
        sycl_queue: Any = None,
        **kwargs: Any,
    ) -> ndarray:
        arrays = [value for value in (*args, *kwargs.values()) if isinstance(value, ndarray)]
        if arrays and device is None and sycl_queue is None:
            queue = arrays[0].queue
        else:
            queue = queue_of(device, sycl_queue)
        kind = None if usm_type is None else check_usm_type(usm_type)
        result: ndarray = method(_shared_generator(queue), *args, **kwargs)
        if kind is not None and result.usm_type != kind:
            return asarray(result, usm_type=kind)
        return result

    summary = (inspect.getdoc(method) or "").split("\n\n")[0]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TEMPLATE.format(summary=summary, name=name, arguments=arguments)
    signature = inspect.signature(method)
    parameters = [*list(signature.parameters.values())[1:], *_PLACEMENT]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


beta = _shared_function("beta", "2.0, 3.0, 4")
binomial = _shared_function("binomial", "10, 0.5, 4")
chisquare = _shared_function("chisquare", "2.0, 4")
choice = _shared_function("choice", "5, 4")
dirichlet = _shared_function("dirichlet", "[1.0, 2.0], 4")
exponential = _shared_function("exponential", "2.0, 4")
f = _shared_function("f", "2.0, 3.0, 4")
gamma = _shared_function("gamma", "2.0, 1.0, 4")
geometric = _shared_function("geometric", "0.5, 4")
gumbel = _shared_function("gumbel", "size=4")
hypergeometric = _shared_function("hypergeometric", "5, 6, 3, 4")
laplace = _shared_function("laplace", "size=4")
logistic = _shared_function("logistic", "size=4")
lognormal = _shared_function("lognormal", "size=4")
logseries = _shared_function("logseries", "0.5, 4")
multinomial = _shared_function("multinomial", "5, [0.5, 0.5], 4")
multivariate_normal = _shared_function(
    "multivariate_normal", "[0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]], 4"
)


negative_binomial = _shared_function("negative_binomial", "5, 0.5, 4")
noncentral_chisquare = _shared_function("noncentral_chisquare", "2.0, 1.0, 4")
noncentral_f = _shared_function("noncentral_f", "2.0, 3.0, 1.0, 4")
normal = _shared_function("normal", "0.0, 1.0, 4")
pareto = _shared_function("pareto", "2.0, 4")
permutation = _shared_function("permutation", "4")
poisson = _shared_function("poisson", "3.0, 4")
power = _shared_function("power", "2.0, 4")
rand = _shared_function("rand", "4")
randint = _shared_function("randint", "10, size=4")
randn = _shared_function("randn", "4")
random = _shared_function("random", "4")
random_integers = _shared_function("random_integers", "10, size=4")
random_sample = _shared_function("random_sample", "4")
ranf = _shared_function("ranf", "4")
rayleigh = _shared_function("rayleigh", "size=4")
sample = _shared_function("sample", "4")
standard_cauchy = _shared_function("standard_cauchy", "4")
standard_exponential = _shared_function("standard_exponential", "4")
standard_gamma = _shared_function("standard_gamma", "2.0, 4")
standard_normal = _shared_function("standard_normal", "4")
standard_t = _shared_function("standard_t", "3.0, 4")
triangular = _shared_function("triangular", "0.0, 1.0, 2.0, 4")
uniform = _shared_function("uniform", "0.0, 1.0, 4")
vonmises = _shared_function("vonmises", "0.0, 1.0, 4")
wald = _shared_function("wald", "1.0, 2.0, 4")
weibull = _shared_function("weibull", "2.0, 4")
zipf = _shared_function("zipf", "2.0, 4")


def bytes(length: int) -> builtins.bytes:
    """Return ``length`` random bytes, on the host.

    Example:
        >>> len(dp.random.bytes(5))
        5
    """
    return _shared_generator(queue_of(None, None)).bytes(length)


def shuffle(x: Any) -> None:
    """Shuffle an array along its first axis, or a list, in place.

    Example:
        >>> x = dp.arange(3)
        >>> dp.random.shuffle(x)
        >>> int(x.sum())
        3
    """
    queue = x.queue if isinstance(x, ndarray) else queue_of(None, None)
    _shared_generator(queue).shuffle(x)
