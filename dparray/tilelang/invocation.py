"""The results of ``submit``, whose work may still be running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dparray._array.ndarray import ndarray
from dparray._evaluate import evaluate
from dparray._runtime.event import event_of_work
from dparray.exceptions import KernelExecutionError


class Invocation:
    """A submitted call of a Tile function.

    Attributes:
        outputs: the arrays by name; they can be used immediately, and work on them runs later.
        event: the end of all submitted work, a :class:`dparray.Event`.

    Example:
        >>> double = dp.tilelang.function("function (A) -> (B) { B = A * 2; }")
        >>> run = double.submit(dp.asarray([1, 2], dtype="int32"))
        >>> run.wait()
        >>> run.done(), run.outputs["B"].tolist()
        (True, [2, 4])
    """

    def __init__(self, names: Sequence[str], arrays: Sequence[ndarray]) -> None:
        evaluate.evaluate(*(each._node for each in arrays if each.is_pending))
        self.outputs: Mapping[str, ndarray] = MappingProxyType(
            dict(zip(names, arrays, strict=True))
        )
        queue = arrays[0].queue
        self.event = event_of_work(queue)

    def done(self) -> bool:
        """Return whether the work is complete."""
        return self.event.done

    def wait(self) -> None:
        """Wait on the host until the work is complete.

        Raises:
            KernelExecutionError: the device failed.
        """
        try:
            self.event.wait()
        except Exception as error:
            raise KernelExecutionError(
                f"tile function: the device failed while it computed "
                f"{', '.join(self.outputs)}: {error}"
            ) from error

    def __repr__(self) -> str:
        state = "done" if self.done() else "running"
        return f"<tile invocation of {', '.join(self.outputs)}, {state}>"
