"""The programs of :mod:`tests.kernel.random_programs`, compiled without Numba in less time.

Numba takes most of the time of a random program. Drivers miscompile shapes of loops and branches,
which follow from LLVM's passes and dparray's rules, so this module translates the programs without
groups: with the translator of generated kernels, and the statements that generated kernels lack.
Loops have Numba's form: the condition of a ``while`` precedes its body and is repeated after it,
and a ``for`` counts its remaining steps.

Run as a program, it compares any number: ``translated_programs.py --count 1000 --seed 0``, and with
``DPARRAY_TEST_WIDE=1`` programs with floats, memory in loops and narrow counters.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if it is run as a program
from dparray import _type_keys
from dparray._compiler import abi
from dparray._compiler import compile as compiler
from dparray._compiler.generated import translation
from dparray._compiler.generated.llvm_builder import GLOBAL, POINTER, Array
from dparray._compiler.generated.numbers import INT64, KINDS, UINT64, Value, written
from dparray._compiler.targets import back_end
from tests.kernel import random_programs
from tests.kernel.random_programs import Case, make_case

_PRIVATE = 0
_END = "finished"


class _Program(translation._Function):
    """Translates one program; its device functions become part of the kernel.

    Attributes:
        functions: the device functions, by name.
        loops: the labels for ``continue`` and ``break`` of each loop, the innermost last.
        private: the pointers to private memory.
        returned: the memory of a device function's result and the label of its end; ``None`` in the
            kernel.
    """

    def __init__(self, module: ast.Module, types: Sequence[str], rows: int) -> None:
        functions = [each for each in module.body if isinstance(each, ast.FunctionDef)]
        self.functions = {each.name: each for each in functions}
        self.rows = rows
        self.loops: list[tuple[str, str]] = []
        self.returned: tuple[str, str] | None = None
        self.private: list[str] = []
        super().__init__(functions[-1], types)
        self.several = _assigned_in(functions[-1])

    def _parameter(self, name: str, key: _type_keys.TypeKey) -> None:
        if key.kind != "array":
            super()._parameter(name, key)
            return
        own = f"%{name}"
        numbers = [f"i64 {own}.{at}" for at in range(2 + 2 * key.ndim)]
        pointer = f"{POINTER.format(GLOBAL)} {own}"
        self.parameters += [*numbers[:2], pointer, *numbers[2:]]
        self.names[name] = Array(own, KINDS[key.numpy_dtype.name], GLOBAL)

    def _mark(self, which: str, pointer: str) -> None:
        """Mark the start or the end of the lifetime of private memory, as LLVM does if it inlines.

        Without these marks, Intel's CPU driver reads values of other work-items.
        """
        self.declared[f"declare void @llvm.lifetime.{which}.p0(ptr)"] = None
        self.do(f"call void @llvm.lifetime.{which}.p0(ptr {pointer})")

    # -- statements -------------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        super()._body(statements)
        if statements is self.function.body:
            self.do(f"br label %{_END}")
            self.begin(_END)
            for pointer in self.private:
                self._mark("end", pointer)

    def _assign_statement(self, statement: ast.Assign) -> None:
        (target,) = statement.targets
        if isinstance(target, ast.Tuple):
            assert isinstance(statement.value, ast.Tuple)
            values = [self._expression(each) for each in statement.value.elts]
            for each, value in zip(target.elts, values, strict=True):
                if isinstance(each, ast.Name):
                    self._assign(each.id, value)
                else:
                    assert isinstance(each, ast.Subscript)
                    array, pointer = self._element(each)
                    self.store(self.to(value, array.kind), pointer, array)
        elif isinstance(target, ast.Name) and ast.unparse(statement.value).startswith("dp.Private"):
            pointer = f"%{self.label('private.')}"
            self.allocated.append(f"  {pointer} = alloca [4 x i64]")
            self._mark("start", pointer)
            self.private.append(pointer)
            for at in range(4):
                self.do(
                    f"store i64 0, ptr {self.emit(f'getelementptr i64, ptr {pointer}, i64 {at}')}"
                )
            self.names[target.id] = Array(pointer, INT64, _PRIVATE)
        else:
            super()._assign_statement(statement)

    def _assign(self, name: str, value: Any) -> None:
        if isinstance(self.names.get(name), Value):
            del self.names[name]  # a parameter, which becomes a variable
        super()._assign(name, value)

    def _augassign_statement(self, statement: ast.AugAssign) -> None:
        if isinstance(statement.target, ast.Name):
            super()._augassign_statement(statement)
            return
        assert isinstance(statement.target, ast.Subscript)
        array, pointer = self._element(statement.target)
        old = Value(self.emit(f"load i64, {POINTER.format(array.space)} {pointer}"), INT64)
        added = self.to(self._expression(statement.value), INT64)
        self.store(self.value(f"add i64 {old.text}, {added.text}", INT64), pointer, array)

    def _return_statement(self, statement: ast.Return) -> None:
        if self.returned is None:
            self._leave_for(_END)
            return
        assert statement.value is not None
        memory, end = self.returned
        value = self.to(self._expression(statement.value), INT64)
        self.do(f"store i64 {value.text}, ptr {memory}")
        self._leave_for(end)

    def _break_statement(self, statement: ast.Break) -> None:
        self._leave_for(self.loops[-1][1])

    def _continue_statement(self, statement: ast.Continue) -> None:
        self._leave_for(self.loops[-1][0])

    def _leave_for(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.begin(self.label("dead"))

    def _while_statement(self, statement: ast.While) -> None:
        start, body, end = (self.label(each) for each in ("test", "body", "end"))
        is_endless = isinstance(statement.test, ast.Constant)
        start = body if is_endless else start

        def test() -> None:
            if is_endless:
                self.do(f"br label %{body}")
            else:
                goes_on = self.truth(self._expression(statement.test))
                self.do(f"br i1 {goes_on.text}, label %{body}, label %{end}")

        self.do(f"br label %{start}")
        if not is_endless:
            self.begin(start)
            test()
        self.begin(body)
        self.loops.append((start, end))
        self._body(statement.body)
        self.loops.pop()
        test()
        self.begin(end)

    def _for_statement(self, statement: ast.For) -> None:
        assert isinstance(statement.iter, ast.Call)
        assert isinstance(statement.target, ast.Name)
        ends = [self.to(self._expression(each), INT64) for each in statement.iter.args]
        first, last = (self.to(written(0), INT64), ends[0]) if len(ends) == 1 else ends[:2]
        step = ast.literal_eval(statement.iter.args[2]) if len(ends) == 3 else 1
        names = ("at", "left")
        at, left = (f"%{self.label(f'{statement.target.id}.{each}.')}" for each in names)
        self.allocated += [f"  {each} = alloca i64" for each in (at, left)]
        lower, upper = (first, last) if step > 0 else (last, first)
        length = self.emit(f"sub i64 {upper.text}, {lower.text}")
        length = self.emit(f"add i64 {length}, {abs(step) - 1}")
        steps = self.emit(f"sdiv i64 {length}, {abs(step)}")
        is_empty = self.emit(f"icmp sle i64 {upper.text}, {lower.text}")
        steps = self.emit(f"select i1 {is_empty}, i64 0, i64 {steps}")
        self.do(f"store i64 {first.text}, ptr {at}")
        self.do(f"store i64 {steps}, ptr {left}")
        test, body, end = (self.label(each) for each in ("test", "body", "end"))
        self.do(f"br label %{test}")
        self.begin(test)
        count = self.emit(f"load i64, ptr {left}")
        goes_on = self.emit(f"icmp sgt i64 {count}, 0")
        self.do(f"br i1 {goes_on}, label %{body}, label %{end}")
        self.begin(body)
        self.do(f"store i64 {self.emit(f'sub i64 {count}, 1')}, ptr {left}")
        number = self.value(f"load i64, ptr {at}", INT64)
        self.do(f"store i64 {self.emit(f'add i64 {number.text}, {step}')}, ptr {at}")
        self.names[statement.target.id] = number
        self.loops.append((test, end))
        self._body(statement.body)
        self.loops.pop()
        self.do(f"br label %{test}")
        self.begin(end)

    # -- expressions ------------------------------------------------------------------------------

    def _element(self, subscript: ast.Subscript) -> tuple[Array, str]:
        array = self._any(subscript.value)
        places = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else []
        index = self.to(self._expression(places[-1] if places else subscript.slice), INT64).text
        if places:
            row = ast.literal_eval(places[0])
            index = self.emit(f"add i64 {index}, {row * self.rows}")
        if array.space == _PRIVATE:
            return array, self.emit(f"getelementptr i64, ptr {array.pointer}, i64 {index}")
        return array, self.address(array, index)

    def _method(self, called: ast.Attribute, node: ast.Call) -> Any:
        if isinstance(called.value, ast.Name) and called.value.id == "np":
            return self.to(self._expression(*node.args), KINDS[called.attr])
        if called.attr != "get_linear_id":
            return super()._method(called, node)
        number = ""
        for dimension, extent in enumerate(self.extents):
            at = self._number_of(abi.GLOBAL_ID, dimension)
            if number:
                number = self.emit(f"mul i64 {number}, {extent.text}")
                at = self.emit(f"add i64 {number}, {at}")
            number = at
        return Value(number, INT64)

    def _call_expression(self, node: ast.Call) -> Any:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called not in self.functions:
            return super()._call_expression(node)
        function = self.functions[called]
        values = [self._expression(each) for each in node.args]
        outer = self.names, self.several, self.loops, self.returned
        result, end = f"%{self.label('result.')}", self.label("returned")
        self.allocated.append(f"  {result} = alloca i64")
        self.names, self.several, self.loops = {}, _assigned_in(function), []
        self.returned = result, end
        for parameter, value in zip(function.args.args, values, strict=True):
            kind = value.kind if value.kind == UINT64 else INT64
            own = self.to(value, kind)
            # Programs convert parameters of another type before they assign them in a loop.
            self.names[parameter.arg] = own
            if kind == INT64:
                self._assign(parameter.arg, own)
        self._body(function.body)
        self.do(f"br label %{end}")
        self.begin(end)
        self.names, self.several, self.loops, self.returned = outer
        return self.value(f"load i64, ptr {result}", INT64)


def _assigned_in(function: ast.FunctionDef) -> set[str]:
    return {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@contextlib.contextmanager
def without_numba(case: Case) -> Iterator[list[str]]:
    """Translate the program of a case inside; Numba compiles what is refused, by the list."""
    refused: list[str] = []
    original = compiler.compile_kernel

    def compile_kernel(
        function: Callable[..., Any],
        types: Sequence[str],
        options: Mapping[str, Any],
        target: Any,
        labels: Sequence[str] = (),
    ) -> Any:
        started = time.perf_counter()
        try:
            program = _Program(ast.parse(case.text), types, case.counts.size)
            compiled = back_end(target).optimised(program.module(), target)
        except translation.TranslationError as error:
            refused.append(str(error))
            return original(function, types, options, target, labels)
        entry = abi.entry_name(function.__name__)
        name = function.__name__
        return compiler._finished(name, entry, compiled, target, types, options, started)

    with (
        mock.patch.object(compiler, "compile_kernel", compile_kernel),
        mock.patch.object(compiler, "kernel_key", return_value=None),  # nothing is cached
    ):
        yield refused


def make_ungrouped_case(seed: int) -> Case:
    """Return the first program without groups, from ten times this seed on."""
    return next(case for case in map(make_case, itertools.count(10 * seed)) if not case.local)


def make_wide_case(seed: int) -> Case:
    """Return the program of a seed with floats, memory in loops and narrow counters."""
    return make_case(seed, is_wide=True)


def compare(case: Case, queue: Any = None) -> None:
    """Raise ``AssertionError`` unless a device and plain Python agree."""
    with without_numba(case):
        random_programs.compare(case, queue)


if __name__ == "__main__":
    from random_kernels import compare_seeds  # beside this program

    is_wide = "DPARRAY_TEST_WIDE" in os.environ
    compare_seeds(make_wide_case if is_wide else make_ungrouped_case, compare)
