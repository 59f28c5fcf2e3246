"""The kernels of expressions: loaded or compiled when that is worth its cost.

They are stored by expression signature, without shapes and scalar values, so a loop that changes
those compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dparray import _hooks, config
from dparray._codegen import elementwise, reduction_rows, reduction_steps
from dparray._codegen.reduction_steps import ReductionStructure
from dparray._codegen.values import array_key, scalar_parameters
from dparray._compiler import compile
from dparray._compiler.key import kernel_key, stored_kernel_key, stored_text_key, text_key
from dparray._driver import traits_of
from dparray._evaluate import background, limits
from dparray._evaluate.plan import KernelLaunch
from dparray._graph.contractions import ContractionStructure
from dparray._type_keys import TypeKey, parse


def source_of(structure: Any) -> str:
    """Return the source of the kernel of a signature."""
    if type(structure) is ReductionStructure:
        return reduction_rows.source_of(structure)
    if type(structure) is ContractionStructure:
        return structure.source
    return elementwise.source_of(structure)


def types_of(launch: KernelLaunch) -> tuple[str, ...]:
    """Return the type keys of the kernel's parameters, the item first."""
    structure = launch.structure
    if type(structure) is ReductionStructure:
        item, types = TypeKey("nditem", ndim=1), reduction_steps.types_of(structure)
    elif type(structure) is ContractionStructure:
        item = TypeKey("nditem" if structure.is_grouped else "item", ndim=structure.dimensions)
        types = (
            *map(array_key, structure.arrays),
            *(key for _, key in scalar_parameters(structure.scalars)),
            *["i8"] * structure.numbers,
        )
    else:
        item = TypeKey("item", ndim=1 + structure.has_rows)
        types = elementwise.types_of(structure)
    return str(item), *(str(parse(key).as_pointer) for key in types)


def _function_of(launch: KernelLaunch, source: str) -> Callable[..., Any]:
    """Return the source as a Python function, which calls user functions."""
    return elementwise.function_of(source, launch.functions)


def key_of(launch: KernelLaunch, source: str, is_stored: bool = False) -> str | None:
    """Return the key of the kernel of a launch with known source; ``None`` if it has none.

    ``is_stored`` asks for its key among the bundled kernels.
    """
    parameters = types_of(launch), options(launch.fp_contract), launch.entry.target
    if launch.functions:
        key = stored_kernel_key if is_stored else kernel_key
        return key(_function_of(launch, source), *parameters)
    return (stored_text_key if is_stored else text_key)(source, *parameters)


def is_on_disk(launch: KernelLaunch, source: str) -> bool:
    """Return whether the kernel of a launch need not be compiled."""
    kernel = compile.recalled(key_of(launch, source), lambda: key_of(launch, source, True))
    return kernel is not None


def options(fp_contract: bool) -> dict[str, bool]:
    """Return the compiler's options for generated kernels."""
    return {"fp_contract": True} if fp_contract else {}


def obtain(launch: KernelLaunch, queue: Any = None) -> Any:
    """Return the kernel of a launch, loaded or compiled if necessary; ``None`` if that is not worth
    it yet and another backend can compute the same.

    Args:
        launch: the launch.
        queue: the queue of the launch, for which the kernel is built in the background.

    Raises:
        KernelCompileError: a function in it does not compile.
    """
    entry = launch.entry
    if launch.must_compile:
        return entry.kernel if entry.kernel is not None else _now(launch, True, queue)
    if entry.kernel is not None and limits.uses_kernels():
        return entry.kernel
    if launch.gain is not None and limits.compiles_in_background():
        return _obtain_later(launch, queue)
    if _is_counted_by_calls(launch, queue):
        return _obtain_after_calls(launch, queue)
    is_first = entry.elements == 0
    entry.elements += limits.effective_call_size(launch.size)
    compiles = limits.is_worth_compiling(launch.size, entry.elements)
    if not compiles and not (is_first and limits.is_worth_loading(launch.size)):
        return None
    return _now(launch, compiles, queue)


def _is_counted_by_calls(launch: KernelLaunch, queue: Any) -> bool:
    """Return whether a library's kernels compute while another thread compiles. True on a GPU,
    whose driver compiles longer than the device needs for an operation on any array.
    """
    return (
        queue is not None and limits.compiles_in_background() and not traits_of(queue).shares_memory
    )


def _obtain_after_calls(launch: KernelLaunch, queue: Any) -> Any:
    """Return the kernel if it is on disk; otherwise request it when a second call shows reuse."""
    entry = launch.entry
    entry.calls += 1
    entry.elements += limits.effective_call_size(launch.size)
    if entry.calls == 1 and limits.is_worth_loading(launch.size):
        return _now(launch, False, queue)
    if limits.is_worth_asking_after(entry.calls) and entry.is_asked_for != "compiler":
        _ask_for(launch, queue, "compiler")
    return None


def _obtain_later(launch: KernelLaunch, queue: Any) -> Any:
    """Return the kernel if the program should wait for it; otherwise request it and return
    ``None``.
    """
    entry, gain = launch.entry, launch.gain
    assert gain is not None
    is_first = entry.elements == 0
    entry.elements += limits.effective_call_size(launch.size)
    if limits.is_worth_waiting(gain, entry.lost) and config.fused_tier:
        return _now(launch, True, queue)
    if entry.is_asked_for == "compiler":
        return None
    if limits.is_worth_asking(entry.lost) or (
        limits.is_worth_asking_after(1 + launch.host_calls)
        and launch.size >= limits.COMPILE_ELEMENTS
        and limits.is_clearly_slower(launch)
    ):
        _ask_for(launch, queue, "compiler")
    elif is_first and limits.is_worth_asking(gain):
        return _now(launch, False, queue)  # Loading takes less than the host loses.
    elif is_first and gain > 0 and limits.is_worth_loading(launch.size):
        _ask_for(launch, queue, "disk")
    return None


def _ask_for(launch: KernelLaunch, queue: Any, provider: str) -> None:
    """Let the background thread load a kernel from ``"disk"``, or have the ``"compiler"`` make it
    if it is not there.
    """
    launch.entry.is_asked_for = provider
    background.ask(partial(make_ready, launch, queue, provider == "compiler", _hooks.caller()))


def note_host_time(launch: KernelLaunch, seconds: float) -> None:
    """Record the time of a host computation that replaced a kernel."""
    launch.host_calls += 1
    launch.host_seconds = min(launch.host_seconds, seconds)
    launch.entry.lost += max(seconds - launch.kernel_seconds, 0.0)


def make_ready(launch: KernelLaunch, queue: Any, compiles: bool, by: _hooks.Caller) -> None:
    """Obtain a kernel and build it for a queue's device in the background."""
    if launch.entry.kernel is None:
        with _hooks.attributed_to(by):
            kernel = _now(launch, compiles, queue, keeps=False)
            if kernel is not None:
                if queue is not None:
                    kernel.built_for(queue)
                launch.entry.kernel = kernel


def _now(launch: KernelLaunch, compiles: bool, queue: Any, keeps: bool = True) -> Any:
    """Return the kernel from memory or disk, or compiled; ``None`` if that is not allowed."""
    entry = launch.entry
    entry.source = source_of(launch.structure)
    source = entry.source
    kernel = compile.recalled(key_of(launch, source), lambda: key_of(launch, source, True))
    if kernel is not None:
        entry.origin = "disk"
    elif compiles:
        parameters = types_of(launch), options(launch.fp_contract), entry.target
        if launch.functions:
            kernel = compile.obtain_kernel(_function_of(launch, source), *parameters, (), queue)
        else:
            kernel = compile.obtain_generated(source, *parameters, queue)
        entry.origin = "compiled"
    if keeps and kernel is not None:  # Another thread may have compiled it meanwhile.
        entry.kernel = kernel
    return kernel
