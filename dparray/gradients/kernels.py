"""Derivatives of kernels: the adjoint of a kernel is a kernel, and so is that of the adjoint."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._compiler.compile import Derived, lock
from dparray._driver import traits_of
from dparray._graph.derivatives import OF_OPS
from dparray._ir.adjoint import (
    Adjoint,
    NoDerivative,
    NotGathered,
    adjoint,
    cotangent,
    gradient,
    plain_updates,
)
from dparray._ir.gathering import Gathered, gathered
from dparray._ir.instructions import Function
from dparray._kernel.decorators import kernel_of
from dparray._kernel.function import KernelFunction
from dparray._kernel.index_space import as_index_space
from dparray._language.errors import Refusal
from dparray._language.promotion import rules_of
from dparray._language.references import UNASSIGNED
from dparray._runtime import rounding
from dparray._type_keys import Signature, parse
from dparray.exceptions import GradientError, KernelCompileError
from dparray.gradients.public import dp
from dparray.gradients.traced import (
    Constant,
    Level,
    Spec,
    Traced,
    alias,
    innermost,
    is_float,
    is_of,
    lowered,
)
from dparray.gradients.transforms import recorded
from dparray.kernel_api import NdRange, Range

#: Below this many elements for each unit of a device, exchanged loops do not fill it.
_MIN_ITEMS_PER_UNIT = 16
#: Atomic additions to one element wait for each other. Each work-item has a copy of a gradient with
#: at most ``_MAX_COPIED`` elements if it reads half of them or more, and ``_MIN_SHARE`` or more
#: work-items share an element.
_MAX_COPIED, _MIN_SHARE = 32, 16
_TAPE = "tape of "  # no parameter has a name with spaces


class AdjointKernel(KernelFunction):
    """The adjoint of a kernel or of another adjoint, as a kernel.

    Its arguments are those of the original, with the cotangents of outputs in their place, then the
    outputs that are updated, a tape, and the gradients of the wanted arguments.

    Attributes:
        form: the original.
        wanted: the arguments whose gradients it computes.
        cleared: the outputs whose cotangents are 0 afterwards where the original has written.
        copied: the wanted arguments whose gradients have a copy for each work-item.
        partly: the wanted arguments to whose gradients a gather adds the rest.
        given: the parameters before the tape.
    """

    def __init__(
        self,
        form: Form,
        wanted: Sequence[str],
        cleared: Sequence[str] = (),
        copied: Sequence[str] = (),
        partly: Sequence[str] = (),
    ) -> None:
        kernel = form.kernel
        super().__init__(kernel.py_func, kernel.options, has_item=kernel._has_item)
        self.form, self.wanted, self.cleared = form, tuple(wanted), tuple(cleared)
        self.copied, self.partly = tuple(copied), tuple(partly)
        self.__name__ = self.__qualname__ = f"adjoint of {kernel.__name__}"
        names = [cotangent(n) if n in form.outputs else n for n in kernel._parameters]
        self.given = (*names, *form.updated)
        self._parameters = (*self.given, f"{_TAPE}{kernel.__name__}", *map(gradient, self.wanted))
        self._checked = self  # Debug mode checks the original.
        self._adjoints: dict[Any, Adjoint] = {}

    def adjoint(self, types: Signature) -> Adjoint:
        """Return the adjoint for the types of the original's arguments, the item first.

        Raises:
            GradientError: it has none.
        """
        self._watch()
        references = self._references
        if any(read(name, UNASSIGNED) is not value for read, name, value in references):
            self._forget(references)
            self._watch()
        found = self._adjoints.get(types)
        if found is None:
            found = self._adjoints[types] = self._made(types)
        return found

    def _made(self, types: Signature) -> Adjoint:
        form = self.form
        given = form.program(types), parse(types[0]).ndim, self.wanted, tuple(form.outputs)
        try:
            return adjoint(*given, OF_OPS, form.updated, self.cleared, self.copied, self.partly)
        except NoDerivative as error:
            raise _refused(form, error) from None

    def _forget(self, references: Any) -> None:
        self._adjoints = {}
        super()._forget(references)

    def _derived(self, types: Sequence[str]) -> Derived:
        own = tuple(types[: 1 + self.form.count])

        def program() -> Function:
            function = self.adjoint(own).function
            plain_updates(function)
            return function

        return Derived(self.description, program)

    @property
    def indexed(self) -> tuple[str, ...]:
        """The arguments whose indices gradients have, here or in the original, if it is an adjoint.

        Their gradients are contiguous, and so must they be.
        """
        inner = self.form.kernel
        further = inner.indexed if isinstance(inner, AdjointKernel) else ()
        return *self.wanted, *self.form.updated, *further

    @property
    def description(self) -> str:
        """A text that differs from that of other kernels of the same function."""
        form = self.form
        inner = form.kernel.description if isinstance(form.kernel, AdjointKernel) else ""
        names = self.wanted, tuple(form.outputs), self.cleared, self.copied, self.partly
        return f"adjoint of {inner or 'it'} by {names}"


class TapeKernel(AdjointKernel):
    """Computes how many elements of the tape a work-item of an adjoint needs."""

    def __init__(self, kernel: AdjointKernel) -> None:
        form = kernel.form
        super().__init__(form, kernel.wanted, kernel.cleared, partly=kernel.partly)
        self.__name__ = self.__qualname__ = f"tape of {form.kernel.__name__}"
        self._parameters = (*self.given, f"size of {self.__name__}")

    def _derived(self, types: Sequence[str]) -> Derived:
        derived = super()._derived(types)
        own = tuple(types[: 1 + self.form.count])
        return Derived(f"tape of {derived.name}", lambda: self.adjoint(own).size())


class GatherKernel(AdjointKernel):
    """Computes the gradient by one argument, with a work-item for each of its elements."""

    def __init__(self, form: Form, name: str, dimensions: int) -> None:
        super().__init__(form, [name])
        self.__name__ = self.__qualname__ = f"gradient of {form.kernel.__name__}"
        sizes = [f"size {number}" for number in range(dimensions)]
        self._parameters = (*self.given, gradient(name), *sizes)
        self.item = f"item:{dimensions}"
        self._programs: dict[Any, Gathered | None] = {}

    def program(self, types: Signature) -> Gathered | None:
        """Return the program for the types of the original's arguments, if there is one."""
        if types not in self._programs:
            form, (name,) = self.form, self.wanted
            given = form.program(types), parse(types[0]).ndim, name, tuple(form.outputs)
            try:
                made = gathered(*given, OF_OPS, form.updated)
            except NotGathered:
                made = None
            self._programs[types] = made
        return self._programs[types]

    def _forget(self, references: Any) -> None:
        self._programs = {}
        super()._forget(references)

    def _derived(self, types: Sequence[str]) -> Derived:
        def program() -> Function:
            made = self.program((self.item, *types[1 : 1 + self.form.count]))
            assert made is not None
            plain_updates(made.function)
            return made.function

        return Derived(f"gather: {self.description}", program)


def _refused(form: Form, error: NoDerivative) -> GradientError:
    """Return the error for a kernel without a derivative, with its line."""
    place, line = error.place, ""
    where, kernel = form.title, form.kernel
    if place is not None:
        where += f", line {place.line}"
        line = linecache.getline(place.file, place.line).strip()
    shown = f"\n    {line}" if line else ""
    if isinstance(kernel, AdjointKernel):
        return GradientError(
            f"{where}: only its first derivative is available, because its adjoint {error}{shown}"
        )
    return GradientError(
        f"{where}: it {error}, and so has no derivative; {error.fix}, or give the derivative with "
        f"dp.custom_gradient{shown}"
    )


class Form:
    """A kernel with the arguments that it writes.

    Attributes:
        kernel: the kernel.
        outputs: for each output the input whose shape, dtype and placement it has, or a shape. An
            output that is an input, too, has ``None``; its new value is an array of its own.
        inputs: the names of the arguments of a call.
        updated: the outputs that are inputs, too.
        count: the number of parameters of the kernel.
        title: what errors call it.
    """

    def __init__(self, kernel: KernelFunction, outputs: Mapping[str, Any], title: str = "") -> None:
        self.kernel, self.outputs = kernel, dict(outputs)
        self.title = title or f"kernel {kernel.py_func.__name__}"
        names = kernel.given if isinstance(kernel, AdjointKernel) else kernel._parameters
        self.updated: tuple[str, ...] = tuple(
            [name for name, like in outputs.items() if like is None]
        )
        created = outputs.keys() - set(self.updated)
        self.inputs = tuple([n for n in names if n not in created and not n.startswith(_TAPE)])
        self.count = len(kernel._parameters)
        self._adjoints: dict[tuple[tuple[str, ...], ...], AdjointForm] = {}

    def adjoint(
        self, wanted: Sequence[str], copied: Sequence[str] = (), partly: Sequence[str] = ()
    ) -> AdjointForm:
        """Return the form of the adjoint by some inputs."""
        key = tuple(wanted), tuple(copied), tuple(partly)
        if key not in self._adjoints:
            arrays = [name for name in wanted if name not in self.outputs]
            cleared = [name for name in wanted if name in self.outputs]
            outputs: dict[str, Any] = {gradient(name): name for name in arrays}
            outputs |= dict.fromkeys(map(cotangent, cleared))
            kernel = AdjointKernel(self, arrays, cleared, copied, partly)
            self._adjoints[key] = AdjointForm(kernel, outputs, self.title)
        return self._adjoints[key]

    def cotangent_of(self, name: str) -> str:
        """Return the output of the adjoint that is the cotangent of an input."""
        return cotangent(name) if name in self.outputs else gradient(name)

    def program(self, types: Signature) -> Function:
        """Return the program for the types of its arguments, the item first."""
        from dparray._language.frontend import translated

        try:
            with lock:
                rules = rules_of(self.kernel.options)
                return translated(self.kernel.py_func, types, rules=rules)
        except Refusal:
            self.kernel._compile(types[0], tuple(types[1:]))  # raises the error of the kernel
            raise

    def created(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs: zeros, or copies of inputs."""
        floats = (x for x in values.values() if is_float(x))
        made = {}
        for name, shape in self.outputs.items():
            if shape is None:
                made[name] = dp.ascontiguousarray(values[name].copy())
                continue
            like = values[shape] if isinstance(shape, str) else next(floats, None)
            if not isinstance(like, ndarray):
                raise GradientError(
                    f"{self.title}: output {name!r} has the dtype and placement of "
                    f"{'its first input of floats' if like is None else f'input {shape!r}'}, which "
                    "must be an array of dparray; write dp.asarray(x)"
                )
            spec = Spec(like)
            made[name] = (spec if isinstance(shape, str) else spec.reshaped(shape)).zeros()
        return made

    def run(self, space: Any, wanted: Sequence[str], *inputs: Any) -> tuple[Any, ...]:
        """Launch the kernel; return its outputs.

        Raises:
            GradientError: it has no derivative by one of the wanted inputs.
        """
        values = dict(zip(self.inputs, inputs, strict=True))
        outputs = self.created(values)
        values |= outputs
        arguments = tuple([values[name] for name in self.kernel._parameters])
        if wanted:
            if not any(map(is_float, outputs.values())):
                raise GradientError(
                    f"{self.title}: its outputs have integer dtypes, and so no "
                    f"gradient; give a shape, or an input of floats: {next(iter(outputs))}=shape"
                )
            self.adjoint(wanted).kernel.adjoint(self.types(space, arguments))
        self.kernel._launch(space, arguments)
        return tuple(outputs.values())

    def types(self, space: Any, arguments: tuple[Any, ...]) -> Signature:
        """Return the types of the arguments of a launch of the kernel, the item first."""
        is_nd = isinstance(space, NdRange)
        item = f"nditem:{len(space.global_range)}" if is_nd else f"item:{len(space)}"
        return item, *self.kernel._bind(arguments)[0]


class AdjointForm(Form):
    """The form of an adjoint kernel."""

    kernel: AdjointKernel

    def __init__(self, kernel: AdjointKernel, outputs: Mapping[str, Any], title: str) -> None:
        super().__init__(kernel, outputs, title)
        self._sizes: TapeKernel | None = None
        self._gathers: dict[tuple[str, int], GatherKernel] = {}

    def program(self, types: Signature) -> Function:
        """Return the adjoint as a program of its own."""
        found = self.kernel._made(types[: 1 + self.kernel.form.count])
        if found.has_tape:
            raise GradientError(
                f"{self.title}: only its first derivative is available, "
                "because its adjoint has a tape for the values that loops carry"
            )
        return found.function

    def run(self, space: Any, wanted: Sequence[str], *inputs: Any) -> tuple[Any, ...]:
        """Launch the adjoint; return the gradients, then the cotangents that it clears.

        Raises:
            GradientError: it has no derivative by one of the wanted inputs.
        """
        values = dict(zip(self.inputs, inputs, strict=True))
        kernel = self.kernel
        cotangents = [n for n in kernel.given if n in values and n.startswith(cotangent(""))]
        for name in (*kernel.indexed, *cotangents):
            x = dp.ascontiguousarray(values[name])
            # A broadcast array of equal elements may share their memory.
            values[name] = x if x.flags.writeable else x.copy()
        place = Spec(values[cotangents[0]])
        for name in kernel.given:
            if name not in values:  # the tape of an adjoint, which is differentiated without one
                values[name] = place.changed((1,), np.dtype("i4")).zeros()
        given = tuple([values[name] for name in kernel.given])
        types = kernel.form.types(space, given[: kernel.form.count])
        made = {}
        for name in kernel.wanted:
            spec = Spec(values[name])
            is_half = spec.dtype == np.float16
            made[name] = spec.changed(spec.shape, np.dtype("f4") if is_half else spec.dtype).zeros()
        if wanted:
            tape = place.changed((1,), np.dtype("i4")).zeros()
            all_types = self.types(space, (*given, tape, *made.values()))
            self.adjoint(wanted).kernel.adjoint(all_types)
        programs = {n: self.gather(n, space, types, given, made) for n in kernel.wanted}
        partly = [name for name, program in programs.items() if program and program.is_partly]
        rest = [name for name in programs if programs[name] is None or name in partly]
        cleared: list[ndarray] = []
        if rest or kernel.cleared:
            form, items = self, prod(space.global_range if isinstance(space, NdRange) else space)
            few = min(_MAX_COPIED, items // _MIN_SHARE)
            copied = [n for n in rest if made[n].size <= few and made[n].dtype.kind == "f"]
            reads = kernel.adjoint(types).reads if copied else {}
            copied = [n for n in copied if n not in partly and made[n].size <= 2 * reads[n]]
            if len(rest) < len(made) or copied or partly:
                form = kernel.form.adjoint((*rest, *kernel.cleared), copied, partly)
            for name in copied:
                made[name] = Spec(made[name]).reshaped((items, *made[name].shape)).zeros()
            cleared = form.scatter(space, types, values, [made[name] for name in rest])
            made |= {name: dp.sum(made[name], axis=0) for name in copied}
        gradients = [
            d if d.dtype == values[name].dtype else dp.astype(d, values[name].dtype)
            for name, d in made.items()
        ]
        return (*gradients, *cleared)

    def gather(
        self,
        name: str,
        space: Any,
        types: Signature,
        given: tuple[Any, ...],
        made: Mapping[str, ndarray],
    ) -> Gathered | None:
        """Compute the gradient by an argument as a gather; return its program, if there is one."""
        d, groups = made[name], traits_of(made[name].queue).groups
        if not isinstance(space, Range) or not d.ndim:
            return None
        if not rounding.is_whole(space, groups) or not rounding.is_whole(d.shape, groups):
            return None
        if (name, len(space)) not in self._gathers:
            self._gathers[name, len(space)] = GatherKernel(self.kernel.form, name, len(space))
        gathering = self._gathers[name, len(space)]
        program = gathering.program(types)
        if program is None:
            return None
        shape = d.shape
        if program.axis is not None:
            shape = (d.shape[program.axis],)
            if shape[0] < _MIN_ITEMS_PER_UNIT * traits_of(d.queue).units:
                return None
        gathering._launch(Range(*shape), (*given, d, *space))
        return program

    def scatter(
        self,
        space: Any,
        types: Signature,
        values: dict[str, Any],
        made: Sequence[ndarray],
    ) -> list[ndarray]:
        """Compute gradients by additions to their elements, which are 0 before.

        Return the cotangents that it clears.
        """
        kernel = self.kernel
        found = kernel.adjoint(types)
        cotangents = [*map(cotangent, kernel.form.outputs)]
        if found.takes:
            values = values | {name: values[name].copy() for name in cotangents}
        tape = Spec(values[cotangents[0]]).changed((1,), found.cell.dtype).zeros()
        given = tuple([values[name] for name in kernel.given])
        if found.has_tape:
            tape = self.tape(space, given, tape)
        kernel._launch(space, (*given, tape, *made))
        return [values[cotangent(name)] for name in kernel.cleared]

    def tape(self, space: Any, given: tuple[Any, ...], like: ndarray) -> ndarray:
        """Return memory for the values that loops carry, as much as the work-items need."""
        if self._sizes is None:
            self._sizes = TapeKernel(self.kernel)
        needed = Spec(like).changed((1,), np.dtype("i4")).zeros()
        self._sizes._launch(space, (*given, needed))
        items = prod(space.global_range if isinstance(space, NdRange) else space)
        with config.override(fallback="allow"):  # It reads no data of the program.
            size = int(needed[0])
        return dp.empty((max(1, size * items),), dtype=like.dtype, sycl_queue=like.queue)


def called(
    form: Form, space: Any, inputs: Sequence[Any], wanted: Sequence[str] = ()
) -> tuple[Any, ...]:
    """Launch a kernel whose arguments may be traced; record it.

    Args:
        form: the kernel.
        space: the range.
        inputs: the arguments.
        wanted: the inputs that are differentiated by transformations within.
    """
    level = innermost(inputs)
    if level is None:
        return form.run(space, wanted, *inputs)
    if level.recording is not None:
        made: tuple[Any, ...] = level.recording.call(form.run, (space, wanted, *inputs), {})
        return made
    places = [n for n, x in enumerate(inputs) if is_moved(x, level)]
    values = [lowered(x, level) for x in inputs]
    names = tuple([form.inputs[place] for place in places])
    outs = called(form, space, values, tuple(dict.fromkeys((*names, *wanted))))
    reads = [kept(x) for x in values]
    backward = form.adjoint(names)

    def pulled(gs: list[Any]) -> list[Any]:
        given = dict(zip(form.inputs, [read() for read in reads], strict=True))
        given |= {cotangent(name): g for name, g in zip(form.outputs, gs, strict=True)}
        made = called(backward, space, [given[name] for name in backward.inputs])
        found = dict(zip(backward.outputs, made, strict=True))
        return [found[form.cotangent_of(name)] for name in names]

    return tuple(recorded(level, inputs, places, outs, pulled))


def is_moved(x: Any, level: Level) -> bool:
    """Return whether an argument is an array of a transformation, and not a constant of it."""
    if not is_of(x, level) or not is_float(x):
        return False
    return level.is_forward or type(x._origin[0]) is not Constant


def kept(x: Any) -> Callable[[], Any]:
    """Return a function that returns an argument as it is now.

    The copy is pending. A kernel needs an array in memory, and reads the argument itself as long as
    nobody has written to it, which evaluates the copy.
    """
    if type(x) is Traced:  # of another transformation
        x = alias(x)
    if type(x) is not ndarray:
        return lambda: x
    copy = x.copy()
    return lambda: x if copy.is_pending else copy


def differentiable(kernel: Any, **outputs: Any) -> Callable[..., Any]:
    """Return a kernel as a function that returns what it writes, and has a gradient.

    The function is called with the range and the kernel's other arguments, in their order or by
    name. It creates the outputs, filled with zeros, launches the kernel and returns them. Its
    derivative is another kernel, compiled when it is first needed: it computes the values of a
    work-item again and goes backward through its statements.

    A kernel has a derivative if its work-items read inputs and write outputs: ``out[i] = value``,
    ``out[i] += value`` with the id of the work-item, and atomic additions. It may have branches,
    loops, device functions, and private arrays of at most 64 elements. Gradients are those by
    arrays; numbers are constants.

    Args:
        kernel: an object made by :func:`kernel`.
        **outputs: for each array that it writes, the name of the input whose shape, dtype and
            placement it has, or a shape.

    Returns:
        A function that returns the output, or a tuple of the outputs in the order given here.

    Raises:
        GradientError: an output is not a parameter. When the function is called with differentiated
            arrays: the kernel has no derivative, as with barriers, local memory, or elements that
            are read after they are written. The error names the line.

    Example:
        >>> @dp.kernel
        ... def cube(item, x, out):
        ...     i = item.get_id(0)
        ...     out[i] = x[i] ** 3
        >>> cubed = dp.differentiable(cube, out="x")
        >>> cubed(dp.Range(2), dp.asarray([1.0, 2.0])).tolist()
        [1.0, 8.0]
        >>> dp.grad(lambda x: dp.sum(cubed(dp.Range(2), x)))(dp.asarray([1.0, 2.0])).tolist()
        [3.0, 12.0]
    """
    launched = kernel_of(kernel)
    names = launched._parameters
    for name, like in outputs.items():
        known = [n for n in names if n not in outputs]
        if name not in names or (isinstance(like, str) and like not in known):
            raise GradientError(
                f"differentiable: {name}={like!r}; an output is a parameter of kernel "
                f"{launched.__name__} ({', '.join(names)}) and is like one of the others "
                f"({', '.join(known)}), or has a shape"
            )
    if not outputs:
        raise GradientError(
            f"differentiable: kernel {launched.__name__} has no output; name the parameters that "
            f"it writes: dp.differentiable({launched.__name__}, {names[-1]}={names[0]!r})"
        )
    shapes = {n: s if isinstance(s, str) else _shape(s) for n, s in outputs.items()}
    form = Form(launched, shapes)

    @functools.wraps(launched.py_func)
    def call(index_space: Any, *inputs: Any, **named: Any) -> Any:
        space = as_index_space(index_space)
        if not isinstance(space, Range | NdRange):
            raise GradientError(
                f"kernel {launched.__name__}: a range over several devices has no derivative; call "
                "the function for each shard, and add the gradients"
            )
        if named or len(inputs) != len(form.inputs):
            inputs = _completed(form, inputs, named)
        try:
            made = called(form, space, inputs)
        except KernelCompileError as error:
            pairs = zip(form.inputs, inputs, strict=True)
            number = next((n for n, x in pairs if type(x) is Traced and not x.ndim), None)
            if number is None:
                raise
            raise GradientError(
                f"kernel {launched.__name__}: {number!r} is a differentiated number, but kernels "
                f"have derivatives by arrays; read {number}[0], and pass dp.reshape({number}, (1,))"
            ) from error
        return made if len(made) > 1 else made[0]

    return call


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)


def _completed(form: Form, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return all inputs in their order."""
    values = dict(zip(form.inputs, inputs, strict=False)) | dict(named)
    missing = [name for name in form.inputs if name not in values]
    if missing or len(values) != len(form.inputs) or len(inputs) + len(named) != len(values):
        raise GradientError(
            f"kernel {form.kernel.__name__}: its inputs are {', '.join(form.inputs)}, after the "
            f"range; got {len(inputs)} and {', '.join(named) or 'none'} by name"
        )
    return tuple([values[name] for name in form.inputs])
