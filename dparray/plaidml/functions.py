"""Functions, invokers and runs, under PlaidML's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dparray import _placement
from dparray.plaidml.devices import Context, Shape, Tensor, dtype_of
from dparray.plaidml.exceptions import InvalidArgument, PlaidMLError
from dparray.tilelang.function import TileFunction
from dparray.tilelang.invocation import Invocation as TileInvocation


class Function:
    """A program in the Tile language, which is parsed here and independent of devices.

    Attributes:
        code: the text.
        inputs, outputs: their names.
        bound, updated: tensors that belong to inputs and outputs, if it was composed.

    Raises:
        TileError: the program is ill-formed; see :func:`dparray.tilelang.function`.
    """

    def __init__(
        self,
        code: str,
        backtrace: Any = None,
        *,
        tile: Any = None,
        bound: Mapping[str, Tensor] | None = None,
        updated: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.code = code
        self.tile = TileFunction(code) if tile is None else tile
        self.inputs = self.tile.inputs
        self.outputs = self.tile.outputs
        self.bound = dict(bound or {})
        self.updated = dict(updated or {})

    def save(self, filename: str) -> None:
        """Write the program to a file, for :func:`load_function`.

        Raises:
            InvalidArgument: tensors are bound to it; a file holds none.
        """
        if self.bound or self.updated:
            raise InvalidArgument(
                "save: tensors are bound to the function, which a file does not hold; make them "
                "inputs and outputs of compose"
            )
        text = self.code if isinstance(self.tile, TileFunction) else self.tile.text()
        Path(filename).write_text(text)


class Invocation:
    """A submitted run; mapping an output waits for it."""

    def __init__(self, submitted: TileInvocation) -> None:
        self.submitted = submitted


class Invoker:
    """Binds tensors and numbers to a function, and runs it.

    Not thread-safe. It can be bound again immediately after :meth:`invoke`.
    """

    def __init__(
        self,
        ctx: Context,
        f: Function,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Tensor] | None = None,
    ) -> None:
        ctx.check()
        self._context = ctx
        self._function = f
        self._inputs: dict[str, Any] = dict(f.bound)
        self._outputs: dict[str, Tensor] = dict(f.updated)
        self.set_inputs(inputs or {})
        self.set_outputs(outputs or {})

    def set_input(self, name: str, value: Any) -> None:
        """Bind a tensor or a number to an input."""
        _check_name("input", name, self._function.inputs)
        self._inputs[name] = value

    def set_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Bind several inputs."""
        for name, value in inputs.items():
            self.set_input(name, value)

    def set_output(self, name: str, value: Tensor) -> None:
        """Bind a tensor to an output."""
        _check_name("output", name, self._function.outputs)
        if not isinstance(value, Tensor):
            raise InvalidArgument(f"the output {name!r} is {value!r}; bind a Tensor")
        self._outputs[name] = value

    def set_outputs(self, outputs: Mapping[str, Tensor]) -> None:
        """Bind several outputs."""
        for name, value in outputs.items():
            self.set_output(name, value)

    def get_output_shape(self, name: str) -> Shape:
        """Return the shape of an output; all inputs must be bound."""
        outputs = self._function.tile.infer(*self._values())
        _check_name("output", name, self._function.outputs)
        shape, dtype = outputs[name]
        return Shape(self._context, dtype_of(dtype), *shape)

    def invoke(self) -> Invocation:
        """Submit a run; it returns before the run ends.

        Raises:
            PlaidMLError: something is not bound, or the tensors are on several devices.
            TileError: the program does not fit the tensors.
            MapError: a view of a tensor is open in this thread.
        """
        self._context.check()
        values = self._values()
        missing = [name for name in self._function.outputs if name not in self._outputs]
        if missing:
            raise InvalidArgument(f"no tensor is bound to the output {missing[0]!r}: set_output")
        tensors = [each for each in self._inputs.values() if isinstance(each, Tensor)]
        queues = [tensor.device.queue for tensor in (*tensors, *self._outputs.values())]
        is_apart = any(queue != queues[0] for queue in queues)
        if is_apart and _placement.policy_in_force() is None:
            raise PlaidMLError(
                "Cross device functions not supported: all tensors of a run must be on one device. "
                'Copy them there, or let a policy do it: with dp.placement("fastest")'
            )
        targets = {name: self._outputs[name].array for name in self._function.outputs}
        submitted = self._function.tile.submitted(*values, out=targets, device=queues[0])
        return Invocation(submitted)

    def _values(self) -> list[Any]:
        missing = [name for name in self._function.inputs if name not in self._inputs]
        if missing:
            raise InvalidArgument(f"nothing is bound to the input {missing[0]!r}: set_input")
        given = (self._inputs[name] for name in self._function.inputs)
        return [each.array if isinstance(each, Tensor) else each for each in given]


def _check_name(kind: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise InvalidArgument(f"there is no {kind} {name!r}; {kind}s are {', '.join(names)}")


def run(
    ctx: Context,
    f: Function,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Tensor] | None = None,
) -> Invocation:
    """Run a function on tensors; it returns before the run ends.

    Args:
        ctx: the context.
        f: the function.
        inputs: tensors and numbers by name.
        outputs: tensors by name, of exactly the results' shapes and types.

    Raises:
        PlaidMLError, TileError, MapError: as :meth:`Invoker.invoke`.
    """
    return Invoker(ctx, f, inputs, outputs).invoke()
