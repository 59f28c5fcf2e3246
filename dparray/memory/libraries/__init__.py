"""The libraries that compute what dparray has no kernels for, over the same memory, a file each.

Only the file of a library imports it, at its first use. The file has a :class:`Library` named
``library`` and a row in :data:`modules`; :func:`library_of` finds it. In: layouts. Out: a library's
arrays over their memory, and layouts over its memory. Imports: rows up to ``memory``, and
``cupy``, ``cupyx``, ``dpctl``, ``dpnp``, ``scipy``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from dparray._driver import traits_of
from dparray._driver.interface import Queue, Traits
from dparray._layout import Layout


class LibraryErrors(NamedTuple):
    """The error classes of a library besides ``ValueError`` (shapes), ``TypeError`` (dtypes).

    Attributes:
        axis: an axis is out of range.
        singular: a matrix is singular, or an iteration does not converge.
        memory: there is not enough memory.
    """

    axis: type[Exception]
    singular: type[Exception]
    memory: type[Exception]


class Library(Protocol):
    """A library over a driver's memory.

    All other attributes are functions by NumPy's names, also ``library.linalg.inv``,
    ``library.fft.fft`` and ``library.scipy.linalg.lu``. They take and return the library's arrays,
    which have NumPy's methods and operators, and give NumPy's values: whatever a library does in
    another way is changed in its file. Those that create arrays use the queue of :meth:`calls`.

    Attributes:
        name: the library's name in messages, the same as ``Traits.library``.
        sorts_in_place: whether it has ``sort_in_place(array, axis)``.
    """

    name: str
    sorts_in_place: bool

    def errors(self) -> LibraryErrors:
        """Return the classes of the library's errors, after it was called."""

    def array(self, layout: Layout, as_bits: bool = False) -> Any:
        """Return the library's array over the memory of a layout, without a copy.

        Args:
            layout: the array.
            as_bits: whether an element type that the library lacks becomes unsigned integers of
                the same size, for copies.

        Raises:
            DTypeError: the library has no such element type.
        """

    def layout(self, array: Any) -> Layout:
        """Return the layout of a result of the library, over its memory, without a copy."""

    def is_array(self, obj: object) -> bool:
        """Return whether an object is an array of the library; does not import it."""

    def calls(self, queue: Queue, usm_type: str = "device") -> AbstractContextManager[None]:
        """Return a context for calls of the library: its work is ordered as that of the queue.

        Args:
            queue: the queue of the operands.
            usm_type: the kind of memory of created arrays.
        """

    def store(self, target: Any, source: Any) -> None:
        """Write an array or a scalar into an array, as ``target[...] = source`` does in NumPy:
        with broadcasting, conversion, and overlapping memory as if through a temporary array.
        """

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> Any:
        """Return an array of a scalar, a NumPy array or an array of the library."""

    def asnumpy(self, array: Any) -> np.ndarray:
        """Return the values on the host."""

    def __getattr__(self, name: str) -> Any:
        """Return a function by NumPy's name.

        Raises:
            AttributeError: the library has none.
        """


#: The modules of the libraries by their names in ``Traits.library``; "" copies to the host.
modules: dict[str, str] = {
    "dpnp": "dparray.memory.libraries.dpnp",
    "CuPy": "dparray.memory.libraries.cupy",
    "NumPy": "dparray.memory.libraries.numpy",
    "": "dparray.memory.libraries.on_host",
}

#: The libraries whose kernels for operations, reductions and copies are compiled ahead; on other
#: devices these are dparray's kernels. A constant, since a finalizer at exit cannot import them.
compiled_ahead = frozenset({"dpnp"})


def library_of(queue: Queue) -> Library:
    """Return the library that computes on a queue's device; where it is not installed, NumPy with
    copies on the host, which the policy for fallbacks allows or forbids at each copy.
    """
    return _library(traits_of(queue).library)


def has_kernels(traits: Traits) -> bool:
    """Return whether a device has a library whose kernels are compiled ahead; imports none."""
    return traits.library in compiled_ahead


@cache
def _library(name: str) -> Library:
    return cast(Library, import_module(modules[name]).library)
