"""Enumerate, build and call on Intel's GPU driver, without a GPU: ``make gpu-driver``.

    python tests/gpu_driver/run.py [devices] [build] [calls] [--products skl tgllp dg2 pvc]

With ``--uncleared`` the calls read whatever their memory held before, instead of zeros; then
uncleared.txt names more calls that may fail.

``build`` builds every module of the call list (collect.py) and prints a table; ``calls`` runs the
call list on the simulated device. Exit status 1 means a crash, a refused module, a failed call that
expectations.txt does not name, or an exceeded bound. Exit status 3 means that the driver is
missing.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import calls
from products import PRODUCTS, ROOT, driver, environment

FOLDER = Path(__file__).parent
OUT = ROOT / "build/gpu-driver"
MAX_SPILLED = 1024
MAX_SECONDS = 60.0
MAX_CPU_SECONDS = 10.0  # of one module; independent of the machine's load


def expectations(file: str = "expectations.txt") -> dict[str, str]:
    """Return the known exceptions of the bounds: the kernel or the call, and the reason."""
    lines = (FOLDER / file).read_text().splitlines()
    pairs = (line.split("  ", 1) for line in lines if line and not line.startswith("#"))
    return {name: reason.strip() for name, reason in pairs}


_DEVICES = """
import dparray as dp
for device in dp.devices():
    facts = device.sycl_device
    if facts.is_gpu:
        print(f"{facts.name}: driver {facts.driver_version}, {facts.max_compute_units} units, "
              f"groups of {facts.max_work_group_size}, sub-groups of {facts.sub_group_sizes}, "
              f"{facts.local_mem_size >> 10} KiB local, "
              f"{'fp64' if facts.has_aspect_fp64 else 'no fp64'}")
"""


def show_devices(products: list[str]) -> bool:
    is_right = True
    for product in products:
        result = subprocess.run(
            [sys.executable, "-c", _DEVICES],
            env=environment(product, OUT / "cache"),
            capture_output=True,
            text=True,
            timeout=120,
        )
        print(f"{product:6} {result.stdout.strip() or result.stderr[-300:]}", flush=True)
        is_right &= bool(result.stdout.strip())
    return is_right


class Child:
    """A process that prints the number of each item before it begins with it."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.rest = b""

    def lines(self, most_seconds: float) -> Any:
        """Yield the lines that it prints, until it ends or prints nothing for the given time."""
        last = time.monotonic()
        while True:
            if self.selector.select(1.0):
                chunk = self.process.stdout.read()  # type: ignore[union-attr]
                if not chunk:
                    self.process.wait()
                    return
                last = time.monotonic()
                *lines, self.rest = (self.rest + chunk).split(b"\n")
                yield from (line.decode() for line in lines)
            elif time.monotonic() - last > most_seconds:
                self.process.kill()
                self.process.wait()
                return


def build(product: str, modules: Path) -> dict[str, Any]:
    """Return the records of all modules, built for a product."""
    out, dump = OUT / f"built_{product}.json", OUT / f"dump_{product}"
    out.unlink(missing_ok=True)
    env = environment(product, OUT / "cache")
    env |= {"IGC_ShaderDumpEnable": "1", "IGC_DumpToCustomDir": f"{dump}/"}
    while True:
        # A killed process leaves an incomplete dump, which must not be attributed to another
        # module.
        shutil.rmtree(dump, ignore_errors=True)
        dump.mkdir(parents=True)
        child = Child(
            [sys.executable, str(FOLDER / "build.py"), str(modules), str(out), str(dump)], env
        )
        running = ""
        for line in child.lines(MAX_SECONDS):
            running = line
        done = json.loads(out.read_text()) if out.exists() else {}
        if child.process.returncode == 0:
            return done
        if not running or running in done:
            sys.exit(f"{product}: building failed before a module")
        why = "too slow" if child.process.returncode == -9 else "crashed"
        about = json.loads((modules / f"{running}.json").read_text())
        done[running] = {"status": why, "kernels": [], "call": about["call"]}
        out.write_text(json.dumps(done))


def build_all(products: list[str]) -> bool:
    modules = OUT / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}:{FOLDER}"}
    subprocess.run([sys.executable, str(FOLDER / "collect.py"), str(modules)], env=env, check=True)
    known, failed = expectations(), []
    titles = ["modules", "built", "no fp64", "refused", "crashed", "slow", "spill > 1 KB"]
    titles += ["most CPU s", "SIMD"]
    print("product  " + "  ".join(titles))
    for product in products:
        records = build(product, modules)
        of = collections.Counter(record["status"].split(" (")[0] for record in records.values())
        spilled, widths = [], collections.Counter()
        for record in records.values():
            name = (record["kernels"] or [record["call"]])[0]
            widths[record.get("assembly", {}).get("simd", 0)] += "assembly" in record
            most = max(record.get("spill", 0), record.get("assembly", {}).get("spilled", 0))
            if most > MAX_SPILLED:
                spilled.append(name)
            if record["status"] not in ("built", "needs fp64") and name not in known:
                failed.append(f"{product}: {name}: {record['status']} {record.get('log', '')}")
            if most > MAX_SPILLED and name not in known:
                failed.append(f"{product}: {name}: spills {most} bytes")
            if record.get("cpu_seconds", 0) > MAX_CPU_SECONDS and name not in known:
                failed.append(f"{product}: {name}: takes {record['cpu_seconds']} s of a processor")
        longest = max(record.get("cpu_seconds", 0) for record in records.values())
        counts = [of["built"], of["needs fp64"], of["refused"], of["crashed"], of["too slow"]]
        row = [len(records), *counts, len(spilled), longest]
        simd = " ".join(f"{width}:{widths[width]}" for width in (32, 16, 8) if widths[width])
        cells = [f"{cell:>{len(title)}}" for cell, title in zip(row, titles, strict=False)]
        print(f"{product:8} " + "  ".join(cells) + f"  {simd}", flush=True)
    print(*failed, sep="\n")
    return not failed


def call_all(products: list[str], every: int, is_cleared: bool) -> bool:
    todo, known, failed = list(calls.calls()), expectations(), []
    known |= {} if is_cleared else expectations("uncleared.txt")
    for product in products:
        env, first, done = environment(product, OUT / "cache"), 0, 0
        if not is_cleared:
            env |= {"CALLS_UNCLEARED": "1", "MALLOC_PERTURB_": "0"}
        if every > 1:  # for a quick look: leave out the calls that are known to take long or fail
            env["CALLS_SKIPPED"] = "\n".join(known)
        while first < len(todo):
            span = (str(first), str(len(todo)), str(every))
            child, running = Child([sys.executable, str(FOLDER / "calls.py"), *span], env), -1
            for line in child.lines(MAX_SECONDS * 3):
                record = json.loads(line)
                if "call" not in record:
                    running = record["number"]
                    continue
                done, first, running = done + 1, record["number"] + every, -1
                is_refusal = record["group"] in calls.REFUSED
                needs_fp64 = "UnsupportedDeviceError" in record["error"]
                if record["error"] and not (is_refusal or needs_fp64 or record["call"] in known):
                    failed.append(f"{product}: {record['call']}\n    {record['error']}")
            if child.process.returncode == 0:
                break
            if first < len(todo):
                if running < 0:
                    sys.exit(f"{product}: the call list ended: {child.process.returncode}")
                if todo[running][1] not in known:
                    code = child.process.returncode
                    failed.append(f"{product}: {todo[running][1]}\n    ended the process: {code}")
                first = running + every
        print(f"{product}: {done} calls returned or raised", flush=True)
    print(*failed, sep="\n")
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", nargs="*", choices=["devices", "build", "calls", []])
    parser.add_argument("--products", nargs="*", default=list(PRODUCTS))
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="try only every N-th call"
    )
    parser.add_argument("--uncleared", action="store_true", help="read memory that nothing wrote")
    options = parser.parse_args()
    if driver() is None:
        print("skipped: build/gpu-driver has no driver; run .ci/gpu-driver")
        return 3
    OUT.mkdir(parents=True, exist_ok=True)
    steps = options.steps or ["devices", "build", "calls"]
    is_right = "devices" not in steps or show_devices(options.products)
    if "build" in steps:
        is_right &= build_all(options.products)
    if "calls" in steps:
        is_right &= call_all(
            [each for each in options.products if each in ("tgllp", "pvc")],
            options.every,
            not options.uncleared,
        )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
