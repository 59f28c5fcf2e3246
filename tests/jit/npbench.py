"""NPBench's Numba programs with ``dp.jit``, beside Numba and NumPy.

    python tests/jit/npbench.py NPBENCH_FOLDER [PRESET [NAME ...]]

Each ``*_numba_n.py`` (or ``*_numba_np.py``) is imported twice: as it is, and with ``numba.jit``,
``numba.prange`` and ``numpy`` replaced by dparray's. Runs alternate; a time is the 20th percentile.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import types
from pathlib import Path
from typing import Any

import numba
import numpy as np

import dparray as dp


def _module(file: Path, replaced: dict[str, Any]) -> Any:
    """Import a file with other modules under some names."""
    kept = {name: sys.modules.get(name) for name in replaced}
    sys.modules.update(replaced)
    try:
        spec = importlib.util.spec_from_file_location(f"{file.stem}_{len(replaced)}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        for name, value in kept.items():
            if value is not None:
                sys.modules[name] = value


def _stand_in() -> dict[str, Any]:
    module: Any = types.ModuleType("numba")
    module.__dict__.update({k: v for k, v in vars(numba).items() if not k.startswith("__")})
    module.jit = module.njit = dp.jit
    module.prange = dp.prange
    return {"numba": module}


def _data(folder: Path, info: dict[str, Any], preset: str) -> dict[str, Any]:
    values: dict[str, Any] = dict(info["parameters"][preset])
    begin = info.get("init")
    if begin:
        file = folder / "npbench/benchmarks" / info["relative_path"] / f"{info['module_name']}.py"
        module = _module(file, {})
        made = getattr(module, begin["func_name"])(*(values[n] for n in begin["input_args"]))
        names = begin["output_args"]
        values.update(zip(names, made if len(names) > 1 else (made,), strict=False))
    return values


def _run(function: Any, names: list[str], data: dict[str, Any], to: Any) -> tuple[float, Any]:
    arguments = [to(data[name].copy() if hasattr(data[name], "copy") else data[name])
                 for name in names]  # fmt: skip
    dp.synchronize()
    start = time.perf_counter()
    result = function(*arguments)
    dp.synchronize()
    return time.perf_counter() - start, (result, arguments)


def _host(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, dp.ndarray) else value


def _agree(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple | list):
        return all(_agree(one, other) for one, other in zip(found, wanted, strict=False))
    if wanted is None or not isinstance(wanted, np.ndarray | np.number | int | float | complex):
        return True
    return bool(np.allclose(_host(found), wanted, rtol=1e-3, atol=1e-4, equal_nan=True))


def measure(folder: Path, name: str, preset: str) -> str:
    """Time one program three ways."""
    info = json.loads((folder / "bench_info" / f"{name}.json").read_text())["benchmark"]
    place = folder / "npbench/benchmarks" / info["relative_path"]
    forms = [place / f"{info['module_name']}_numba_{kind}.py" for kind in ("n", "np", "npr")]
    form = next((each for each in forms if each.exists()), None)
    if form is None:
        return f"{name:<24} no Numba form"
    data = _data(folder, info, preset)
    func, names = info["func_name"], info["input_args"]

    def device(value: Any) -> Any:
        return dp.asarray(value) if isinstance(value, np.ndarray) else value

    ways = {
        "numpy": (
            getattr(_module(place / f"{info['module_name']}_numpy.py", {}), func),
            lambda v: v,
        ),
        "numba": (getattr(_module(form, {}), func), lambda v: v),
        "jit": (getattr(_module(form, _stand_in()), func), device),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    wanted = _run(*_args(ways["numpy"], names, data))[1]
    _run(*_args(ways["numba"], names, data))
    found = _run(*_args(ways["jit"], names, data))[1]
    right = _agree(found[1], wanted[1]) and _agree(found[0], wanted[0])
    for _ in range(9):
        for way in ways:
            times[way].append(_run(*_args(ways[way], names, data))[0])
        if sum(map(sum, times.values())) > 4:
            break
    low = {way: float(np.percentile(each, 20)) for way, each in times.items()}
    return (
        f"{name:<24} {'right' if right else 'WRONG'}  numpy {low['numpy'] * 1e3:9.3f} ms  "
        f"numba {low['numpy'] / low['numba']:7.2f}x  jit {low['numpy'] / low['jit']:7.2f}x  "
        f"jit/numba {low['numba'] / low['jit']:6.2f}"
    )


def _args(way: Any, names: list[str], data: dict[str, Any]) -> Any:
    return way[0], names, data, way[1]


if __name__ == "__main__":
    root = Path(sys.argv[1])
    size = sys.argv[2] if len(sys.argv) > 2 else "S"
    chosen = sys.argv[3:] or sorted(file.stem for file in (root / "bench_info").glob("*.json"))
    for each in chosen:
        try:
            print(measure(root, each, size), flush=True)
        except Exception as error:  # the next program is measured all the same
            print(f"{each:<24} {type(error).__name__}: {str(error)[:300]}", flush=True)
