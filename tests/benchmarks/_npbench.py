"""NPBench's NumPy programs, read from a clone of spcl/npbench and run unchanged with dparray.

Nothing of NPBench is part of dparray: ``--npbench`` names the folder of the clone. NPBench's own
functions create the data at its own sizes. Its code is executed as it is, so name only a clone that
you trust.
"""

from __future__ import annotations

import builtins
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import ndarray
from dparray.device import Device

#: The sizes that are run; larger ones take minutes with NumPy.
SIZES = ("S", "M")

_RELATIVE, _ABSOLUTE = 1e-5, 1e-8  # single precision is summed in another order


class NPBenchProgram:
    """One program of NPBench: the function that creates its data, and the function that computes.

    Attributes:
        name: its name.
        run: the program with NumPy; :attr:`ours` with dparray.
    """

    def __init__(self, folder: Path, description: Mapping[str, Any]) -> None:
        self._description = description
        self.name: str = description["module_name"]
        directory = folder / "npbench" / "benchmarks" / description["relative_path"]
        self._folder, self._source = directory, directory / f"{self.name}_numpy.py"
        function = description["func_name"]
        self.run: Callable[..., Any] = _names_of(self._source, np)[function]
        self.ours: Callable[..., Any] = _names_of(self._source, dp)[function]

    def arguments(self, size: str) -> dict[str, Any]:
        """Return the program's arguments by name, with NumPy arrays."""
        values = dict(self._description["parameters"][size])
        init = self._description.get("init")
        if init:
            maker = _names_of(self._folder / f"{self.name}.py", np)[init["func_name"]]
            made = maker(*(values[name] for name in init["input_args"]))
            names = init["output_args"]
            values |= zip(names, made if len(names) > 1 else [made], strict=True)
        return {name: values[name] for name in self._description["input_args"]}

    def numba_forms(self, jit: Any = None) -> dict[str, Callable[..., Any]]:
        """Return the program's Numba forms by name (``n``, ``np``, ``npr``).

        Args:
            jit: the function used as Numba's ``jit`` and ``njit``, together with dparray's
                ``prange``. Defaults to Numba's own.
        """
        function = self._description["func_name"]
        found = {}
        for kind in ("n", "np", "npr"):
            source = self._folder / f"{self.name}_numba_{kind}.py"
            names = _module_of(source, jit) if source.is_file() else {}
            if function in names:
                found[kind] = names[function]
        return found


def programs(folder: Path) -> Iterator[NPBenchProgram]:
    """Return all programs that have a NumPy form.

    Raises:
        FileNotFoundError: the folder is not a clone of NPBench.
    """
    descriptions = sorted((folder / "bench_info").glob("*.json"))
    if not descriptions:
        raise FileNotFoundError(
            f"--npbench {folder}: no folder bench_info with JSON files is there; name a clone: "
            "git clone https://github.com/spcl/npbench"
        )
    for path in descriptions:
        description = json.loads(path.read_text())["benchmark"]
        module = f"{description['module_name']}_numpy.py"
        if (folder / "npbench" / "benchmarks" / description["relative_path"] / module).is_file():
            yield NPBenchProgram(folder, description)


def on_host(arguments: Mapping[str, Any]) -> list[Any]:
    """Return the arguments with arrays to which the program may write."""
    return [each.copy() if isinstance(each, np.ndarray) else each for each in arguments.values()]


def on_device(arguments: Mapping[str, Any], device: Device) -> list[Any]:
    """Return the arguments with arrays of a device."""
    return [
        dp.asarray(each, device=device) if isinstance(each, np.ndarray) else each
        for each in arguments.values()
    ]


def why_wrong(ours: Any, theirs: Any) -> str:
    """Return the differences between the results of two runs; empty if there are none."""
    if isinstance(theirs, tuple | list):
        if len(ours) != len(theirs):
            return f"{len(ours)} results, not {len(theirs)}"
        differences = (why_wrong(a, b) for a, b in zip(ours, theirs, strict=True))
        return next(filter(None, differences), "")
    if theirs is None:
        return ""
    found = ours.asnumpy() if isinstance(ours, ndarray) else np.asarray(ours)
    expected = np.asarray(theirs)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
    relative = 1e-3 if expected.dtype.char in "fF" else _RELATIVE
    if np.allclose(found, expected, relative, _ABSOLUTE, equal_nan=True):
        return ""
    return f"differs by up to {np.nanmax(np.abs(found - expected)):.2g}"


def _module_of(source: Path, jit: Any) -> dict[str, Any]:
    """Return a file's names, imported as a separate module whose source Numba can read."""
    module = ModuleType(source.stem)
    code = compile(source.read_text(), str(source), "exec")
    if jit is not None:
        numba = ModuleType("numba")
        vars(numba).update(vars(importlib.import_module("numba")))
        vars(numba).update(jit=jit, njit=jit, prange=dp.prange)

        def importing(name: str, *args: Any, **kwargs: Any) -> Any:
            return numba if name == "numba" else __import__(name, *args, **kwargs)

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": importing}
    exec(code, module.__dict__)
    return module.__dict__


def _names_of(source: Path, module: Any) -> dict[str, Any]:
    """Return a file's names; its imports of NumPy give ``module``."""

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "numpy" and module is not np:
            return module
        return __import__(name, *args, **kwargs)

    own = ModuleType(source.stem)
    own.__dict__["__builtins__"] = {**vars(builtins), "__import__": importing}
    exec(compile(source.read_text(), str(source), "exec"), own.__dict__)
    return own.__dict__
