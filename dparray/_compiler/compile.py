"""Compile a Python function, type keys and options into a :class:`Kernel`.

A kernel comes from memory, from disk, or is compiled. Type keys come from
:mod:`dparray._kernel.arguments`; the item parameter has ``"item:N"`` or ``"nditem:N"``. The key of
a kernel never contains a queue, so all queues share it.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dparray import _hooks, _log, config
from dparray._codegen.elementwise import function_of
from dparray._compiler import abi, cache, store
from dparray._compiler.kernel import NO_ADVICE, Kernel
from dparray._compiler.key import kernel_key, stored_kernel_key, stored_text_key, text_key
from dparray._compiler.targets import APPROXIMATE, DIMENSIONS, EmissionError, back_end
from dparray._driver import driver_of, processor, waiting
from dparray._driver.interface import Target
from dparray._driver.working_folder import working_folder
from dparray._ir.checks import record_checks
from dparray._ir.instructions import Function
from dparray._language.advice import Advice
from dparray._language.errors import Refusal, described_refusal
from dparray._language.promotion import rules_of
from dparray._language.references import called_device_functions, referred_values
from dparray._type_keys import parse, value_of
from dparray.exceptions import (
    KernelCompileError,
    KernelCompileWarning,
    KernelError,
    KernelTypeWarning,
)
from dparray.memory.kernels import kernel_memory

#: Held while a kernel is compiled.
lock = threading.RLock()


class Derived(NamedTuple):
    """Another program that is compiled in place of a function's, such as its adjoint.

    Attributes:
        name: tells it from others of the same function, in keys.
        program: returns the program.
    """

    name: str
    program: Callable[[], Function]


def obtain_kernel(
    function: Callable[..., Any],
    types: Sequence[str],
    options: Mapping[str, Any],
    target: Target,
    labels: Sequence[str] = (),
    queue: Any = None,
    derived: Derived | None = None,
) -> Kernel:
    """Return the kernel of ``function`` for these types: from memory, from disk, or compiled now.

    Args:
        function: a Python function in the kernel language.
        types: type keys, the item first.
        options: ``debug``, ``inline_threshold``, ``fastmath``, ``fp_contract``, ``dimensions``, the
            number of dimensions of the range for a kernel without an item, and ``checked`` if the
            last parameter is the record of checks. ``widens``: its types are those of numba-dpex.
        target: the target of the device.
        labels: the parameters with their types, for error messages.
        queue: the queue of the launch; its driver loads its compiler meanwhile.
        derived: the program to compile, if it is another one; the types are those of its arguments.

    Raises:
        KernelCompileError: it does not compile.
    """
    if derived is not None:
        options = {**options, "derived": derived.name}
    key = kernel_key(function, types, options, target)
    if key is None:
        kernel = compile_kernel(function, types, options, target, labels, derived)
    else:
        kernel = _obtained(
            key,
            target,
            lambda each: stored_kernel_key(function, types, options, each),
            lambda each: _compile_once(key, each, function, types, options, each, labels, derived),
            queue,
        )
    for line, text in kernel.advice.cuts:
        warn_at(function, line, text, KernelTypeWarning)
    return kernel


def obtain_host_function(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any]
) -> Kernel:
    """Return a function of numbers and elements that the processor calls once, not a kernel.

    Args:
        function: a Python function in the kernel language, without an item.
        types: the type keys of its parameters.
        options: ``fastmath`` allows floating-point operations to be reordered; ``cache=False``
            keeps it out of the disk cache; ``debug`` checks its indices.

    Raises:
        Refusal: the language does not have something in it.
    """
    target = processor().target()
    key = kernel_key(function, types, {**options, "sequential": True}, target)
    is_kept = key is not None and options.get("cache", True)
    kernel = _load(lambda each: cache.load(each, cache.REGION), key) if is_kept else None
    if kernel is None:
        # Imported here: a program whose functions are cached never needs them.
        from dparray._compiler import llvm
        from dparray._language.frontend import translation

        with lock, working_folder():
            started = time.perf_counter()
            checked = bool(options.get("debug"))
            program = translation(function, types, checked, is_sequential=True).function
            entry, text = llvm.module(program)
            if options.get("fastmath"):
                text = abi.fast(text)
            compiled = back_end(target).optimised(text, target)
        name = function.__name__
        kernel = _finished(name, entry, compiled, target, types, options, started)
        if key is not None and is_kept:
            cache.save(key, kernel.to_bytes(), cache.REGION)
    return kernel


def _compile_once(key: str, target: Target, *arguments: Any) -> Kernel:
    """Compile, unless another thread just did, for which an interrupted program had waited."""
    with lock:
        kernel: Kernel | None = kernel_memory.get(key)
        if kernel is None or kernel.target != target:
            kernel = compile_kernel(*arguments)
        return kernel


def obtain_generated(
    source: str,
    types: Sequence[str],
    options: Mapping[str, Any],
    target: Target,
    queue: Any = None,
) -> Kernel:
    """Return the kernel of a generated source text, like :func:`compile_kernel`.

    Raises:
        KernelCompileError: it does not compile.
    """
    key = text_key(source, types, options, target)
    return _obtained(
        key,
        target,
        lambda each: stored_text_key(source, types, options, each),
        lambda each: compile_generated(source, types, options, each),
        queue,
    )


def _obtained(
    key: str,
    target: Target,
    stored_key: Callable[[Target], str | None],
    make: Callable[[Target], Kernel],
    queue: Any,
) -> Kernel:
    kernel = recalled(key, lambda: stored_key(target))
    if kernel is None:
        if queue is not None:
            driver_of(queue).warm_up(queue)
        if config.notices and threading.current_thread() is threading.main_thread():
            directory = cache.base_directory()
            _log.notice(
                "kernels are being compiled"
                + (
                    f", and kept in {directory}, so that later runs start immediately"
                    * bool(directory)
                )
                + " (dp.config.notices = False: no such line)"
            )

        def made() -> Kernel:
            kernel = make(target)
            cache.save(key, kernel.to_bytes())
            for each in store.recorded_targets:
                other = kernel if each == target else make(each)
                store.record(stored_key(each), other.to_bytes(has_seconds=False))
            kernel_memory.put(key, kernel)
            return kernel

        kernel = waiting.interruptible(_hooks.carried(made))
    return kernel


def recalled(key: str | None, stored_key: Callable[[], str | None] = lambda: None) -> Kernel | None:
    """Return the kernel of a key if memory, the bundle or the disk has it; never compile.

    Args:
        key: the kernel's key in memory and on disk.
        stored_key: returns its key among the bundled kernels.
    """
    if key is None:
        return None
    kernel: Kernel | None = kernel_memory.get(key)
    if kernel is None:
        kernel = _load(store.load, stored_key()) if store.is_there() else None
        if kernel is None:
            kernel = _load(cache.load, key)
        if kernel is not None:
            kernel_memory.put(key, kernel)
    return kernel


def forget() -> None:
    """Drop the kernels in memory, as in a new process; kernels on disk stay."""
    kernel_memory.clear()


def _load(load: Callable[[str], bytes | None], key: str | None) -> Kernel | None:
    started = time.perf_counter()
    text = None if key is None else load(key)
    if text is None:
        return None
    try:
        kernel = Kernel.from_bytes(text)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if _hooks.subscribers:
        seconds = time.perf_counter() - started
        _hooks.emit("compile", kernel=kernel, seconds=seconds, origin="disk")
    return kernel


def generated_module(source: str, types: Sequence[str]) -> tuple[str, str]:
    """Return the entry point of a generated kernel, and its module as LLVM IR.

    Raises:
        Refusal: the language does not have something in the source.
    """
    # Imported here: a program whose kernels are cached never needs them.
    from dparray._compiler import llvm
    from dparray._language.frontend import translated

    return llvm.module(translated(function_of(source), types))


def compile_generated(
    source: str, types: Sequence[str], options: Mapping[str, Any], target: Target
) -> Kernel:
    """Compile the source of a generated kernel without looking into caches.

    Raises:
        KernelCompileError: it does not compile.
    """
    compiler = back_end(target)
    compiler.start()  # It loads LLVM while this process translates.
    started = time.perf_counter()
    try:
        entry, text = generated_module(source, types)
        compiled = compiler.optimised(text, target, bool(options.get("fp_contract")))
    except (Refusal, EmissionError) as error:
        raise KernelCompileError(
            f"a generated kernel does not compile, which is a bug in dparray: {error}",
            details=f"{source}\n{error}",
        ) from error
    name = entry.removeprefix("kernel_")
    return _finished(name, entry, compiled, target, types, options, started)


def _finished(
    name: str,
    entry: str,
    compiled: tuple[str, bytes],
    target: Target,
    types: Sequence[str],
    options: Mapping[str, Any],
    started: float,
    advice: Advice = NO_ADVICE,
) -> Kernel:
    """Create the kernel of a module, and emit its event."""
    llvm, module = compiled
    seconds = time.perf_counter() - started
    kernel = Kernel(
        name,
        entry,
        module,
        tuple(types),
        target=target,
        needs=back_end(target).needs(module),
        llvm=zlib.compress(llvm.encode(), 1),
        seconds=seconds,
        # Debuggers need code that the driver has not optimized.
        build_options="-cl-opt-disable -g" if options.get("debug") else "",
        advice=advice,
    )
    _hooks.emit("compile", kernel=kernel, seconds=seconds, origin="compiled")
    return kernel


def compile_kernel(
    function: Callable[..., Any],
    types: Sequence[str],
    options: Mapping[str, Any],
    target: Target,
    labels: Sequence[str] = (),
    derived: Derived | None = None,
) -> Kernel:
    """Compile ``function``, or the program derived from it, without looking into caches."""
    # Imported here: a program whose kernels are cached never needs them.
    from dparray._compiler import llvm
    from dparray._language import frontend

    is_checked = "checked" in options
    own = slice(-1 if is_checked else None)  # The last parameter is the record of faults.
    compiler = back_end(target)
    with lock, working_folder():
        compiler.start()  # It loads LLVM while the kernel is translated here.
        started = time.perf_counter()
        try:
            advice = NO_ADVICE
            if derived is not None:
                program = derived.program()
            else:
                rules = rules_of(options)
                program, advice, *_ = frontend.translation(function, types[own], is_checked, rules)
            if is_checked:
                record_checks(program)
            compiler.prepare(program)
            entry, text = llvm.module(program)
            text += DIMENSIONS.format(options.get("dimensions") or parse(types[0]).ndim)
            is_fast = bool(options.get("fastmath"))
            text += APPROXIMATE if is_fast else ""
            contracts = is_fast or bool(options.get("fp_contract"))
            compiled = compiler.optimised(text, target, contracts)
        except Refusal as refusal:
            message = described_refusal(refusal, function, (labels or types)[own])
            raise _compile_error(message, details=message) from None
        except OSError as error:
            raise KernelError(
                f"kernel {function.__name__}: the system refused what the compiler needs ({error})"
            ) from error
        except EmissionError as error:
            message = f"kernel {function.__name__} does not compile: {error}"
            raise _compile_error(message, details=str(error)) from error
    _warn_of_tables(function, types)
    return _finished(function.__name__, entry, compiled, target, types, options, started, advice)


def _compile_error(message: str, *, details: str) -> KernelCompileError:
    """Return the error of a kernel that does not compile.

    Handlers written for numba-dpex catch it, too: if Numba is loaded, it is one of Numba's errors.
    """
    errors = sys.modules.get("numba.core.errors")
    kind = KernelCompileError if errors is None else _error_class(errors.TypingError)
    return kind(message, details=details)


@functools.lru_cache(maxsize=1)
def _error_class(typing_error: Any) -> type[KernelCompileError]:
    """Return a class of compile errors that are Numba errors, too."""

    class CompileError(KernelCompileError, typing_error):
        def __init__(self, message: str, *, details: str = "") -> None:
            typing_error.__init__(self, message)
            self.args = (message,)
            self.details = details

        def __str__(self) -> str:
            return str(self.args[0])

    CompileError.__name__ = CompileError.__qualname__ = "KernelCompileError"
    CompileError.__module__ = KernelCompileError.__module__
    return CompileError


def describe_fault(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any], record: Any
) -> str:
    """Return the message for the record of faults that a checked kernel has written.

    Args:
        function: the kernel.
        types: the type keys of its parameters, without the record.
        options: those of the kernel.
        record: the record, on the host.
    """
    from dparray._language import checks, frontend

    sites = frontend.translation(function, types, True, rules_of(options)).sites
    return checks.describe_fault(function.__name__, sites, record)


_MAX_NUMBERS = 128  # 100 numbers take 0.2 s to compile, 1000 take 7 s.


def _warn_of_tables(function: Callable[..., Any], types: Sequence[str]) -> None:
    """Warn of tuples of many numbers, each of which is compiled into the kernel."""
    found: dict[str, Any] = {}
    functions: list[Callable[..., Any]] = [function, *called_device_functions(function)]
    for each in functions:
        found |= referred_values(each)
    names = function.__code__.co_varnames
    for name, key in zip(names, types, strict=False):
        if key.startswith("constant:"):
            found[name] = value_of(parse(key).dtype)
    for name, value in found.items():
        count = _numbers_in(value)
        if count > _MAX_NUMBERS:
            text = (
                f"{name} is a tuple of {count} numbers, all of which are compiled into the kernel, "
                f"which takes long; pass it as an array: dp.asarray({name})"
            )
            warn_at(function, 0, text, KernelCompileWarning)


def _numbers_in(value: Any) -> int:
    return sum(map(_numbers_in, value)) if isinstance(value, tuple) else 1


# Warned lines by file: Python shows a warning once for each line.
_warned: dict[str, dict[Any, Any]] = {}


def warn_at(function: Callable[..., Any], line: int, text: str, category: type[Warning]) -> None:
    """Warn about a line of a user's kernel, counted from its ``def``."""
    code = function.__code__
    ours = (function.__module__ or "").partition(".")[0] == "dparray"
    if not ours and not code.co_filename.startswith("<dparray"):
        warnings.warn_explicit(
            f"kernel {function.__name__}: {text}",
            category,
            code.co_filename,
            code.co_firstlineno + line,
            registry=_warned.setdefault(code.co_filename, {}),
        )


def module_text(kernel: Kernel) -> str:
    """Return a kernel's module in readable form."""
    return str(back_end(kernel.target).readable(kernel.llvm, kernel.module))
