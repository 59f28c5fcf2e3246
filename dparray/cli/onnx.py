"""``dparray onnx``: check a model, show how it is computed, and time its nodes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np

import dparray as dp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray onnx``."""
    parser.add_argument("--check", action="store_true", help="load it, print nothing but errors")
    parser.add_argument("--profile", action="store_true", help="run it, and time its nodes")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--device", help="a device, such as cpu or gpu:1 (default: the default)")
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a size that the model leaves open, for --profile (default: 1)",
    )
    parser.add_argument("model", help="an ONNX file")
    parser.epilog = "--profile computes with zeros; values that decide shapes may need others."


def run(arguments: argparse.Namespace) -> int:
    """Print the plan of a model."""
    try:
        model = dp.onnx.load(arguments.model, device=arguments.device)
    except ModuleNotFoundError as error:
        print(f"dparray onnx: {error}", file=sys.stderr)
        return 1
    if arguments.check:
        return 0
    if arguments.profile:
        rows = _timed(model, _inputs(model, arguments.size))
        if arguments.json:
            print(json.dumps(rows, indent=2))
            return 0
        total = sum(row["us"] for row in rows) or 1.0
        print(f"{total / 1e3:.3f} ms in {len(rows)} nodes, each waited for")
        print("   no.  operator                  us     %  name")
        for row in rows[:30]:
            share = 100 * row["us"] / total
            head = f"{row['node']:6}  {row['operator']:20}"
            print(f"{head} {row['us']:8.1f} {share:5.1f}  {row['name']}")
        return 0
    if arguments.json:
        print(json.dumps(_described(model), indent=2))
        return 0
    print("inputs    " + "\n          ".join(map(str, model.inputs)))
    print("outputs   " + "\n          ".join(map(str, model.outputs)))
    opsets = (f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset.items())
    print("opsets    " + ", ".join(opsets))
    print(f"weights   {len(model.weights)} ({model.nbytes:,} bytes)")
    operators = (f"{name} {count}" for name, count in model.operators.items())
    print("operators " + ", ".join(operators))
    folded = sum(node.how == "folded" for node in dp.explain(model).nodes)
    print(f"nodes     {len(dp.explain(model).nodes)}, {folded} of them folded at load")
    return 0


def _described(model: Any) -> dict[str, Any]:
    return {
        "inputs": list(map(str, model.inputs)),
        "outputs": list(map(str, model.outputs)),
        "opset": model.opset,
        "nbytes": model.nbytes,
        "operators": model.operators,
    }


def _inputs(model: Any, sizes: list[str]) -> dict[str, Any]:
    """Return zeros of the declared shapes."""
    known = {}
    for text in sizes:
        name, _, number = text.partition("=")
        if not number.isdigit():
            raise dp.exceptions.ArgumentError(f"--size must be NAME=N, as in batch=8, not {text!r}")
        known[name] = int(number)
    inputs = {}
    for info in model.inputs:
        if info.dtype is None or info.shape is None:
            raise dp.exceptions.OnnxError(
                f"the model does not declare the shape of {info}; call it in a program instead"
            )
        shape = [size if isinstance(size, int) else known.get(str(size), 1) for size in info.shape]
        inputs[info.name] = np.zeros(shape, info.dtype)
    return inputs


def _timed(model: Any, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the time of each node of a recorded plan, the longest first."""
    times: dict[int, float] = defaultdict(float)
    repeats, last = 5, 0.0

    def watch(number: int, value: Any) -> None:
        nonlocal last
        dp.eval(value)
        dp.synchronize(model.device)
        now = time.perf_counter()
        times[number] += now - last
        last = now

    plan = model.profiled(inputs, watch)
    if plan is None:
        raise dp.exceptions.OnnxError(
            "values decide the shapes of this model, so that it has no plan; profile the program "
            "with dp.profile() instead"
        )
    plan()
    times.clear()
    for _ in range(repeats):
        last = time.perf_counter()
        plan()
    rows = [
        {
            "node": number,
            "operator": model.nodes[number].operator if number >= 0 else "",
            "name": model.nodes[number].proto.name if number >= 0 else "",
            "us": 1e6 * spent / repeats,
        }
        for number, spent in times.items()
    ]
    return sorted(rows, key=lambda row: -row["us"])
