"""The table of operators: the function for each domain and name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dparray.exceptions import ArgumentError, OnnxError
from dparray.onnx import functions as dp
from dparray.onnx.call_recorder import Traced, is_array
from dparray.onnx.tensors import numpy_dtype

Function = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """The implementation of an operator.

    Attributes:
        function: accepts the call and the inputs; returns a value, or a tuple of values.
        since: the first supported opset.
        is_on_device: whether constants are also computed on the device, since NumPy has no
            function.
        placed: the number of inputs that are placed on the device for such a row; the row reads the
            others on the host if they are constants. None for all.
        reads_graphs: whether it runs graphs of its node (If, Loop, Scan).
        is_random: whether each call returns different values.
        is_users: whether it is a user function on dparray arrays, recorded as one call.
    """

    function: Function
    since: int = 1
    is_on_device: bool = False
    reads_graphs: bool = False
    is_random: bool = False
    is_users: bool = False
    placed: int | None = None


ROWS: dict[tuple[str, str], Row] = {}


def row(*names: str, **attributes: Any) -> Callable[[Function], Function]:
    """Register a function for the standard operators ``names``, with attributes of `Row`."""

    def enter(function: Function) -> Function:
        for name in names:
            ROWS["", name] = Row(function, **attributes)
        return function

    return enter


def operator(name: str, *, domain: str = "", since: int = 1) -> Callable[[Function], Function]:
    """Register your own function for an operator.

    The function receives the node, with its attributes (``node["alpha"]``, ``node.get("alpha",
    0.5)``), and one dparray array per input, None for absent ones. It returns an array, or a tuple
    of arrays. It may launch kernels.

    Args:
        name: the operator's name, as in the model.
        domain: its domain; ``""`` is the standard's.
        since: the first opset version of the domain that the function computes.

    Example:
        >>> @dp.onnx.operator("Double", domain="my")
        ... def double(node, x):
        ...     return x * 2
    """
    if not name or not isinstance(name, str):
        raise ArgumentError(f'operator: name must be a string such as "Gate", not {name!r}')

    def enter(function: Function) -> Function:
        ROWS[standard_domain(domain), name] = Row(function, since, True, is_users=True)
        return function

    return enter


def standard_domain(domain: str) -> str:
    """Return the canonical spelling of a domain: the standard has two names."""
    return "" if domain == "ai.onnx" else domain


class _Host:
    """NumPy, extended by the names that operators use of `Recorder`."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        setattr(self, name, function)
        return function

    @staticmethod
    def call(function: Function, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    @staticmethod
    def place(x: Any) -> Any:
        return x


HOST = _Host()


@dataclass
class Call:
    """One computation of a node, as passed to its implementation.

    Attributes:
        node: the node, with its decoded attributes.
        xp: the functions to use: NumPy's if all inputs are on the host, else dparray's, recorded.
        run: the pass through the model.
        scope: the values of the outer graphs, by name.
    """

    node: Any
    xp: Any
    run: Any
    scope: Any = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or a default."""
        return self.node.attributes.get(name, default)

    def __getitem__(self, name: str) -> Any:
        try:
            return self.node.attributes[name]
        except KeyError:
            raise OnnxError(f"the attribute {name!r} is missing") from None

    @property
    def opset(self) -> int:
        """The opset version of the node's domain."""
        return int(self.node.version)

    @property
    def outputs(self) -> int:
        """The number of outputs of the node."""
        return len(self.node.outputs)

    @property
    def device(self) -> Any:
        """The device of the model."""
        return self.run.model.device

    def host(self, x: Any) -> Any:
        """Return a value as a NumPy array."""
        if isinstance(x, Traced):
            return x.recorder.read(x)
        return x if x is None or isinstance(x, np.ndarray) else np.asarray(x)

    def ints(self, x: Any) -> list[int]:
        """Return the integers of a value."""
        return [int(each) for each in self.host(x).reshape(-1)]

    def dtype(self, like: Any) -> Any:
        """Return the dtype of the attribute ``dtype``, or that of a value."""
        return numpy_dtype(self["dtype"]) if self.get("dtype") else like.dtype

    def axes(self, given: Any, rank: int, default: Any = None) -> tuple[int, ...] | None:
        """Return the axes of an input, or of the attribute ``axes``, counted from 0."""
        axes = self.ints(given) if given is not None else self.get("axes", default)
        return None if axes is None else tuple(checked_axis(int(axis), rank) for axis in axes)

    def check_size(self, shape: Any, dtype: Any) -> None:
        """Raise if an array would exceed the limit of the model."""
        self.run.check_size(shape, dtype)

    def cached(self, key: Any, make: Callable[[], Any], of: Any = None) -> Any:
        """Return a value derived from constants of this node, computed once.

        ``of`` is the value it was derived from: another value triggers a new computation.
        """
        known = self.node.cache.get(key)
        if known is None or known[0] is not of:
            known = self.node.cache[key] = (of, make())
        return known[1]


def checked_axis(axis: int, rank: int, is_boundary: bool = False) -> int:
    """Return an axis counted from 0; a boundary between axes may also be ``rank``."""
    if is_boundary and axis == rank:
        return rank
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise OnnxError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % max(rank, 1)


def module_of(x: Any) -> Any:
    """Return the module of an array: NumPy or dparray."""
    return dp if is_array(x) else np


def is_traced(x: Any) -> bool:
    """Return whether a value, or one in a sequence, is on the device."""
    return isinstance(x, Traced) or (isinstance(x, list) and any(map(is_traced, x)))
