"""Typing of a kernel without lowering it, to record the types of its call sites."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from numba.core import types
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typed_passes import IRLegalization
from numba.core.typing.templates import signature

from dparray._compiler.numba.passes import analysis
from dparray._compiler.numba.pipeline import Pipeline
from dparray._compiler.numba.registration import typed_by_arguments
from dparray._compiler.numba.target import compile_with, registry, set_flags
from dparray._language.inference import Inferred, site

_RECORDS = "dparray_records"


@typed_by_arguments(site, prefer_literal=True)
def _typed_site(arguments: Any, keywords: Any) -> Any:
    number, value = arguments
    return signature(value, number, value)


@registry.lower(site, types.Any, types.Any)
def _site(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return arguments[1]


def recording(function: FunctionType, records: list[Inferred]) -> FunctionType:
    """Return a copy of a function whose variable types are recorded when it is compiled."""
    scope = {**function.__globals__, _RECORDS: records}
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


@analysis
def _record_types(state: Any) -> None:
    """Record the types of a function and of its call sites."""
    sites: dict[int, Any] = {}
    for block in state.func_ir.blocks.values():
        for call in block.find_exprs(op="call"):
            if getattr(state.typemap[call.func.name], "typing_key", None) is not site:
                continue
            number, value = state.calltypes[call].args
            number = number.literal_value
            if number in sites:  # Python's compiler duplicates the conditions of loops
                value = state.typingctx.unify_pairs(sites[number], value)
            sites[number] = value
    state.func_id.func.__globals__[_RECORDS].append(
        Inferred(
            tuple(_kind(each, is_argument=True) for each in state.args),
            {number: _kind(each) for number, each in sites.items()},
            _kind(state.return_type),
        )
    )


def _kind(numba_type: Any, *, is_argument: bool = False) -> Any:
    """Return the kind of a Numba type; a literal stays one if it is an argument."""
    if isinstance(numba_type, types.IntegerLiteral):
        return ("literal", numba_type.literal_value)
    numba_type = types.unliteral(numba_type)
    if isinstance(numba_type, types.Boolean):
        return "bool"
    if isinstance(numba_type, types.Number):
        return str(numba_type)
    if isinstance(numba_type, types.BaseTuple) and not isinstance(numba_type, types.BaseNamedTuple):
        return ("tuple", tuple(_kind(each, is_argument=is_argument) for each in numba_type))
    if is_argument and isinstance(numba_type, types.Array):
        return ("array", str(numba_type.dtype), numba_type.ndim)
    return None


class Recording(Pipeline):
    """The pipeline for a device function, which records its types."""

    finds: Any = (_record_types,)


class _Typing(Recording):
    """The pipeline for a kernel, which ends after typing."""

    def define_pipelines(self) -> list[Any]:
        (steps,) = super().define_pipelines()
        names = [step for step, _ in steps.passes]
        steps.passes = steps.passes[: names.index(IRLegalization)]
        steps.passes.append((_end, "finish"))
        steps._finalized = False
        steps.finalize()
        return [steps]


@analysis
def _end(state: Any) -> None:
    state.cr = True


@global_compiler_lock
def infer_kernel(function: FunctionType, argument_types: Sequence[Any]) -> None:
    """Type a kernel that :func:`recording` returned.

    Raises:
        NumbaError: it does not compile.
    """
    flags = Flags()
    set_flags(flags)
    compile_with(_Typing, function, argument_types, flags)
