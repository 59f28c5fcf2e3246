"""Functions that are dropped free what they compiled."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host


def loop() -> Callable[..., Any]:
    def function(x: Any) -> Any:
        for i in range(1, x.size):
            x[i] += x[i - 1]
        return x[0]

    return function


def array_code() -> Callable[..., Any]:
    def function(x: Any) -> Any:
        x[1:] += x[:-1] * 2
        return x * x

    return function


def parallel_loop() -> Callable[..., Any]:
    def function(x: Any) -> Any:
        total = 0.0
        for i in dp.prange(x.size):
            total += x[i]
        return total

    return function


def caller() -> Callable[..., Any]:
    def callee(value: Any) -> Any:
        return value * 2

    def function(x: Any) -> Any:
        for i in range(x.size):
            x[i] = callee(x[i])
        return x[0]

    return function


def raising() -> Callable[..., Any]:
    def callee(value: Any) -> Any:
        if value > 1:
            raise ValueError("too large")
        return value

    def function(x: Any) -> Any:
        for i in range(x.size):
            x[i] = callee(x[i] * 2)

    return function


def compiled_functions() -> list[Any]:
    """Return the native functions that come from ``dp.jit`` and are alive."""
    gc.collect()
    own = "dparray._driver.host.processor"
    return [each for each in gc.get_objects() if type(each).__module__ == own]


@pytest.mark.parametrize(
    "make", [loop, array_code, parallel_loop, caller, raising],
    ids=lambda each: each.__name__,
)  # fmt: skip
@pytest.mark.parametrize("size", [8, 20_000])
@pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")
def test_a_dropped_function_is_freed(make: Callable[..., Any], size: int) -> None:
    before = compiled_functions()
    function = dp.jit(cache=False)(make())
    if make is raising:
        with pytest.raises(ValueError, match="too large") as raised:
            function(dp.ones(size))
        assert [each.name for each in raised.traceback][-2:] == ["function", "callee"]
        del raised
    else:
        function(dp.ones(size))
    assert len(compiled_functions()) > len(before)
    del function
    assert len(compiled_functions()) == len(before)


def test_a_caller_keeps_what_it_calls() -> None:
    outer = dp.jit(cache=False)(caller())
    x = dp.ones(4)
    assert outer(x) == 2
    gc.collect()
    other = dp.ones(4, dtype="float32")
    assert outer(other) == 2
    np.testing.assert_array_equal(other.asnumpy(), np.full(4, 2, "float32"))


def test_the_pass_managers_of_llvm_are_freed() -> None:
    program = """if True:
        import dparray
        from llvmlite import binding

        def memory():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        binding.initialize_native_target()
        machine = binding.Target.from_default_triple().create_target_machine()
        def compile_some():
            for _ in range(200):
                builder = binding.create_pass_builder(
                    machine, binding.create_pipeline_tuning_options()
                )
                builder.getFunctionPassManager(), builder.getModulePassManager()
        compile_some()
        before = memory()
        compile_some()
        print(memory() - before)
    """
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert int(found.stdout) < 2**20, found.stderr
