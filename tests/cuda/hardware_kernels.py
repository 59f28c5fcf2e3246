"""The part of ``hardware.py`` that runs a folder of PTX: checks values, and measures rates.

The folder has ``built.json``, a list of launches; ``NAME.ptx`` for each; and ``NAME.npz`` with the
memory before (``in2``) and after (``out2``) by argument, for those with values.
"""

from __future__ import annotations

import ctypes
import json
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_KEY = re.compile(r"(local )?(pointer )?([a-z]\d+)(:\d\w*)?")
_TOLERANCES = {2: 2e-3, 4: 2e-5, 8: 1e-11}
_TINY = 12


def kernels(results: Any, options: Any) -> None:
    """Run all kernels of the folder."""
    if options.kernels is None:
        results["kernels"] = "no folder was named (--kernels)"
        return
    folder = options.kernels
    if folder.is_file():
        unpacked = tempfile.mkdtemp()
        with tarfile.open(folder) as archive:
            archive.extractall(unpacked, filter="data")
        folder = next(Path(unpacked).rglob("built.json")).parent
    records = json.loads((folder / "built.json").read_text())
    card = _Card()
    if options.tiny:
        records = [each for each in records if each["has_values"]][:_TINY]
    counts = {"right": 0, "wrong": 0}
    for record in sorted(records, key=lambda each: not each["has_values"]):
        name = record["name"]
        try:
            found = card.run(record, folder, is_timed=not options.tiny)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        finally:
            card.free()
        is_right = "error" not in found and not found.get("wrong")
        counts["right" if is_right else "wrong"] += 1
        if not is_right or not record["has_values"]:
            results[name] = found
    results["counts"] = counts


class _Card:
    """The device, by cuda-bindings."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.cuda = driver
        self.do(driver.cuInit(0))
        device = self.do(driver.cuDeviceGet(0))
        self.do(driver.cuCtxSetCurrent(self.do(driver.cuDevicePrimaryCtxRetain(device))))
        self.stream = self.do(driver.cuStreamCreate(1))
        self.addresses: list[int] = []

    def do(self, answer: tuple[Any, ...]) -> Any:
        error, *rest = answer
        if int(error):
            raise RuntimeError(error.name)
        return rest[0] if rest else None

    def free(self) -> None:
        for each in self.addresses:
            self.cuda.cuMemFree(each)
        self.addresses.clear()

    def put(self, values: np.ndarray) -> int:
        address = int(self.do(self.cuda.cuMemAlloc(max(16, values.nbytes))))
        self.addresses.append(address)
        if values.nbytes:
            self.do(self.cuda.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
        return address

    def run(self, record: dict[str, Any], folder: Path, *, is_timed: bool) -> dict[str, Any]:
        cuda = self.cuda
        text = (folder / f"{record['name']}.ptx").read_bytes() + b"\0"
        module = self.do(cuda.cuModuleLoadData(text))
        function = self.do(cuda.cuModuleGetFunction(module, record["entry"].encode()))
        if record["shared"] > 48 << 10:
            kind = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.do(cuda.cuFuncSetAttribute(function, kind, record["shared"]))
        path = folder / f"{record['name']}.npz"
        values = dict(np.load(path)) if path.exists() else {}
        arguments, places, nbytes = self._arguments(record, values)
        kept = [np.asarray(each).reshape(1) for each in arguments]
        table = (ctypes.c_void_p * max(1, len(kept)))(*[each.ctypes.data for each in kept])
        dims = [(*each, 1, 1)[:3] for each in (record["grid"], record["block"])]

        def launch() -> None:
            place = ctypes.addressof(table)
            shared = record["shared"]
            self.do(
                cuda.cuLaunchKernel(function, *dims[0], *dims[1], shared, self.stream, place, 0)
            )

        launch()
        self.do(cuda.cuStreamSynchronize(self.stream))
        found: dict[str, Any] = {}
        if record["has_values"]:
            found["wrong"] = self._differences(record, values, places)
        elif is_timed:
            seconds = min(self._seconds(launch, 20) for _ in range(3))
            found = {"us": seconds * 1e6, "GB/s": nbytes / seconds / 1e9}
        return found

    def _seconds(self, launch: Any, times: int) -> float:
        cuda = self.cuda
        first, last = (self.do(cuda.cuEventCreate(0)) for _ in range(2))
        self.do(cuda.cuEventRecord(first, self.stream))
        for _ in range(times):
            launch()
        self.do(cuda.cuEventRecord(last, self.stream))
        self.do(cuda.cuEventSynchronize(last))
        return float(self.do(cuda.cuEventElapsedTime(first, last))) / 1e3 / times

    def _arguments(
        self, record: dict[str, Any], values: dict[str, np.ndarray]
    ) -> tuple[list[Any], dict[int, int], int]:
        """Return the arguments, the address of each array's memory, and the bytes of all."""
        given, places, nbytes = record["arguments"], {}, 0
        kinds, generator = _dtypes(record), np.random.default_rng(1)
        for start, end, members in _blocks(given):
            whole = np.zeros(max(16, end - start), np.uint8)
            if f"in{members[0]}" not in values:
                whole = _random(generator, kinds.get(members[0], np.dtype("u1")), end - start)
            for at in members:
                if f"in{at}" in values:
                    part, first = values[f"in{at}"], given[at]["array"] - start
                    whole[first : first + part.size] = part
            address = self.put(whole)
            places |= {at: address + given[at]["array"] - start for at in members}
            nbytes += end - start
        arguments: list[Any] = []
        for at, each in enumerate(given):
            if "scalar" in each:
                arguments.append(np.dtype(each["scalar"]).type(each["value"]))
            elif "local" in each:
                arguments.append(np.int64(record["offsets"][str(at)]))
            else:
                arguments.append(np.uint64(places[at] - each.get("low", 0)))
        return arguments, places, nbytes

    def _differences(
        self, record: dict[str, Any], values: dict[str, np.ndarray], places: dict[int, int]
    ) -> list[str]:
        wrong, kinds = [], _dtypes(record)
        for at, place in places.items():
            if f"in{at}" not in values:
                continue
            wanted = values.get(f"out{at}", values[f"in{at}"])
            found = np.empty(wanted.size, np.uint8)
            if found.size:
                self.do(self.cuda.cuMemcpyDtoH(found.ctypes.data, place, found.size))
            dtype = kinds.get(at, np.dtype("u1"))
            if (text := _difference(found, wanted, dtype)) and found.size % dtype.itemsize == 0:
                wrong.append(f"argument {at} ({dtype}): {text}")
        return wrong


def _blocks(given: list[dict[str, Any]]) -> list[tuple[int, int, list[int]]]:
    """Return the memory behind the arrays: start, end and the arguments in it."""
    found: list[tuple[int, int, list[int]]] = []
    arrays = [at for at, each in enumerate(given) if "array" in each]
    for at in sorted(arrays, key=lambda each: given[each]["array"]):
        start = given[at]["array"]
        end = start + given[at].get("nbytes", 0) - given[at].get("low", 0)
        if found and start < found[-1][1]:
            first, last, members = found[-1]
            found[-1] = first, max(last, end), [*members, at]
        else:
            found.append((start, end, [at]))
    return found


def _dtypes(record: dict[str, Any]) -> dict[int, np.dtype]:
    matches = [_KEY.fullmatch(each) for each in record["types"]]
    codes = [each[3] for each in matches if each and (each[1] or each[2] or each[4])]
    places = [
        at for at, each in enumerate(record["arguments"]) if "array" in each or "local" in each
    ]
    return {
        at: np.dtype("?" if code == "b1" else code) for at, code in zip(places, codes, strict=False)
    }


def _random(generator: Any, dtype: np.dtype, nbytes: int) -> np.ndarray:
    count = nbytes // dtype.itemsize
    if dtype.kind == "f":
        return (generator.random(count, np.float32) * 2).astype(dtype)
    if dtype.kind == "c":
        return generator.random(2 * count, np.float32).astype(f"f{dtype.itemsize // 2}").view(dtype)
    high = 2 if dtype.kind == "b" or dtype.itemsize == 1 else 64
    return generator.integers(0, high, count).astype(dtype)


def _difference(found: np.ndarray, wanted: np.ndarray, dtype: np.dtype) -> str:
    if np.array_equal(found, wanted) or found.size % dtype.itemsize:
        return ""
    a, b = found.view(dtype), wanted.view(dtype)
    far = a != b
    if dtype.kind in "fc":
        tolerance = _TOLERANCES[dtype.itemsize // (2 if dtype.kind == "c" else 1)]
        with np.errstate(all="ignore"):
            a, b = (each.astype("c16" if dtype.kind == "c" else "f8") for each in (a, b))
            scale = np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0)
            is_near = np.abs(a - b) <= tolerance * (np.abs(b) + 0.05 * scale)
            far = ~((a == b) | is_near | (np.isnan(a) & np.isnan(b)))
    if not far.any():
        return ""
    first = int(np.argmax(far))
    return f"{int(far.sum())} of {far.size} differ, [{first}] is {a[first]}, not {b[first]}"
