"""The call list: each line of calls.txt is one call of the public interface; lines form groups.

On a simulated GPU only exceptions, crashes and hangs are reported: it computes nothing, so that all
values are zero. Run as a script, the module executes the calls from a given number on and prints
one line of JSON for each.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

# Groups whose calls raise errors by design, or which need a second device.
REFUSED = ("expected",)
NEED_TWO_DEVICES = ("devices", "expected")

SETUP = """
import numpy as np, dpctl
import dparray as dp
gpu = dp.Device(os.environ.get("CALLS_DEVICE", "gpu"))
cpu = next((d for d in dp.devices() if d.device_type == "cpu"), None)
dp.set_default_device(gpu)
f32, f64 = np.float32, np.float64
x = dp.ones(1000, dtype=f32); y = dp.full(1000, 2.0, dtype=f32)
i = dp.arange(1000, dtype="int32"); L = dp.arange(1000, dtype="int64"); b = i > 500
c = dp.ones(1000, dtype="complex64"); h = dp.ones(1000, dtype="float16")
m = dp.ones((64, 48), dtype=f32); s = dp.eye(32, dtype=f32) * 2
big = dp.ones(1 << 18, dtype=f32); bigi = dp.arange(1 << 18, dtype="int32")
bm = dp.ones((1024, 512), dtype=f32)
z = dp.zeros(1000, dtype=f32)
"""

KERNELS = '''"""Kernels as users write them."""
import numpy as np
import dparray as dp
import dparray.kernel_api as ka


@dp.kernel
def saxpy(item: dp.Item, a, x, y):
    i = item.get_id(0)
    y[i] = a * x[i] + y[i]


@dp.kernel
def block_sum(it: dp.NdItem, x, out, tmp):
    l = it.get_local_id(0)
    tmp[l] = x[it.get_global_id(0)]
    dp.group_barrier(it.get_group())
    k = it.get_local_range(0) // 2
    while k > 0:
        if l < k:
            tmp[l] += tmp[l + k]
        dp.group_barrier(it.get_group())
        k //= 2
    if l == 0:
        out[it.get_group().get_group_id(0)] = tmp[0]


@dp.kernel
def atomics(item: dp.Item, x, out):
    i = item.get_id(0)
    dp.AtomicRef(out, i % 7).fetch_add(x[i])


@dp.kernel
def groups(it: dp.NdItem, x, out):
    g = it.get_group()
    i = it.get_global_id(0)
    v = ka.reduce_over_group(g, x[i], "add")
    w = ka.inclusive_scan_over_group(g, x[i], "add")
    out[i] = v + w + ka.group_broadcast(g, x[i], 0)


@dp.kernel
def scans2d(it: dp.NdItem, x, out):
    g = it.get_group()
    i = it.get_global_id(0) * 16 + it.get_global_id(1)
    out[i] = ka.inclusive_scan_over_group(g, x[i]) + ka.reduce_over_group(g, x[i])


@dp.kernel
def subgroups(it: dp.NdItem, x, out):
    g = it.get_sub_group()
    i = it.get_global_id(0)
    v = ka.reduce_over_group(g, x[i], "add")
    w = ka.shift_group_left(g, x[i], 1) + ka.permute_group_by_xor(g, x[i], 1)
    out[i] = v + w


@dp.kernel
def vectors(item: dp.Item, x, out):
    i = item.get_id(0)
    v = ka.vec_load(x, i * 4, 4)
    ka.vec_store(out, i * 4, v * v + 1)


@dp.kernel
def prints(item: dp.Item, x):
    i = item.get_id(0)
    if i == 0:
        print("x", i, x[i])


@dp.kernel
def private(item: dp.Item, x, out):
    i = item.get_id(0)
    p = dp.PrivateArray(8, dp.float32)
    for k in range(8):
        p[k] = x[i] + k
    t = p[0]
    for k in range(1, 8):
        t += p[k]
    out[i] = t


@dp.kernel
def one_of_many(item: dp.Item, x, out):
    i = item.get_id(0)
    out[i] = 1 if x[i] in (1, 4, 5, 9, 14, 19, 22) else 0


@dp.device_func
def sq(v):
    return v * v


@dp.kernel
def funcs(item: dp.Item, x, out):
    i = item.get_id(0)
    out[i] = sq(x[i])
'''


def calls() -> Iterator[tuple[str, str]]:
    """Yield group and text of each call."""
    group = ""
    for line in (FOLDER / "calls.txt").read_text().splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif line.strip():
            yield group, line


def names() -> dict[str, Any]:
    """Return the names that the calls use."""
    # The source of kernels is read from their file, so they need one.
    path = Path(tempfile.mkdtemp()) / "kernels_of_users.py"
    path.write_text(KERNELS)
    found: dict[str, Any] = {"os": os}
    exec(SETUP, found)
    exec(compile(KERNELS, str(path), "exec"), found)
    return found


def finish(value: Any) -> None:
    """Wait for a result, and read it."""
    import dparray as dp

    if isinstance(value, tuple | list):
        for each in value:
            finish(each)
    elif isinstance(value, dict):
        finish(list(value.values()))
    elif isinstance(value, dp.ndarray):
        value.asnumpy()
    elif hasattr(value, "wait"):
        value.wait()


def start_from_zeros() -> None:
    """Make every array zero that nothing has written.

    The simulated device writes nothing, so results are the previous content of their memory, and
    sizes computed from values would be arbitrary. The allocator of this process clears new memory
    (``MALLOC_PERTURB_`` in products.py). Here the pool never reuses memory, and reads begin with
    zeros.
    """
    from types import SimpleNamespace

    import numpy as np

    import dparray
    from dparray.memory import copies, pool

    assert dparray
    allocate = pool.allocate

    def allocate_fresh(queue: Any, usm_type: str, nbytes: int) -> Any:
        pool.release()
        return allocate(queue, usm_type, nbytes)

    pool.SLAB = 0
    for module in list(sys.modules.values()):
        if getattr(module, "allocate", None) is allocate:
            module.allocate = allocate_fresh  # type: ignore[attr-defined]
    copies.np = SimpleNamespace(**vars(np) | {"empty": np.zeros})  # type: ignore[assignment]


def main() -> None:
    faulthandler.enable()
    # Kernels print to standard output, too.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    first, last, step = map(int, sys.argv[1:4])
    if "CALLS_UNCLEARED" not in os.environ:
        start_from_zeros()
    known = names()
    skipped = os.environ.get("CALLS_SKIPPED", "").splitlines()
    for number, (group, text) in list(enumerate(calls()))[first:last:step]:
        if text in skipped:
            continue
        print(json.dumps({"number": number}), file=answers, flush=True)
        record: dict[str, Any] = {"number": number, "group": group, "call": text, "error": ""}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                finish(eval(text, known))
            except Exception as error:
                record["error"] = f"{type(error).__name__}: {str(error)[:400]}"
        print(json.dumps(record), file=answers, flush=True)
    # The driver reads freed memory while the process ends.
    os._exit(0)


if __name__ == "__main__":
    main()
