"""Evaluation: the way from an operation to work on a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpnp.exceptions import AxisError as LibraryAxisError

from dparray._launcher import Bound, launch
from dparray._ops import Op
from dparray._usm import library
from dparray.exceptions import AxisError, DparrayError, DTypeError, ShapeError

if TYPE_CHECKING:
    from dpctl import SyclEvent, SyclQueue


def elementwise(op: Op, operands: Sequence[Any], out: Any) -> None:
    """Compute ``op`` of tensors and scalars, all of the loop's dtypes, into the tensor ``out``."""
    getattr(library, op.name)(*operands, out=out)


def assign(target: Any, value: Any) -> None:
    """Write a tensor or a scalar into the tensor ``target``, broadcast and converted."""
    target[...] = value


def library_call(
    name: str,
    function: Callable[..., Any],
    tensors: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wrap: Callable[[Any], Any],
) -> Any:
    """Call a function of dpnp.tensor and wrap the tensors it returns; its errors become ours."""
    try:
        result = function(*tensors, *args, **kwargs)
    except DparrayError:
        raise
    except LibraryAxisError as error:
        raise AxisError(f"{name}: {error}") from None
    except (ValueError, TypeError) as error:
        operands = ", ".join(f"{tensor.dtype}{list(tensor.shape)}" for tensor in tensors)
        kind = ShapeError if isinstance(error, ValueError) else DTypeError
        raise kind(f"{name}({operands}): {error}") from None
    return _wrapped(result, wrap)


def _wrapped(result: Any, wrap: Callable[[Any], Any]) -> Any:
    if isinstance(result, library.usm_ndarray):
        return wrap(result)
    if isinstance(result, tuple | list):
        parts = [_wrapped(part, wrap) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def launch_kernel(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    bound: Bound,
    queue: SyclQueue,
    depends_on: Sequence[SyclEvent] = (),
) -> SyclEvent:
    """Launch a compiled kernel with arguments that a binder of ``_launcher`` has flattened."""
    return launch(
        kernel, global_range, local_range, bound.flat, queue, depends_on, bound.borrowed
    )
