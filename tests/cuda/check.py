"""Check the launches of tests, or of the call list, in this process.

    python -m tests.cuda.check tests tests/kernel tests/codegen -q
    python -m tests.cuda.check calls --first 3 --every 24

Arguments after ``tests`` are pytest's. ``calls`` treats the CPU device as a GPU with the numbers of
an H100. Prints the faults and the counts; the exit status is 1 if there are faults.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

_H100 = {
    "kind": "gpu",
    "shares_memory": False,
    "units": 132,
    "threads": 64,
    "group": 1024,
    "sub_groups": (32,),
    "local_memory": 48 << 10,
}


def check_tests(checker: Any, arguments: list[str]) -> None:
    """Run pytest with the checker as a plugin."""
    import pytest

    from tests.cuda.launches import Plugin

    pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[Plugin(checker)])


def check_calls(checker: Any, first: int, every: int) -> None:
    """Run each N-th call of the call list, from one on."""
    os.environ["CALLS_DEVICE"] = "cpu"
    from tests import support

    sys.path.append(str(Path(__file__).parents[1] / "gpu_driver"))
    calls = import_module("calls")
    support.leave_out_radix_sort(setattr)
    for module in list(sys.modules.values()):  # compile small expressions at the first call
        if module.__name__.startswith("dparray") and hasattr(module, "COMPILE_ELEMENTS"):
            module.COMPILE_ELEMENTS = 1
    chosen = [each for each in calls.calls() if each[0] not in calls.NEED_TWO_DEVICES][first::every]
    with support.pretending() as pretend, checker.installed(), warnings.catch_warnings():
        pretend(**_H100)
        known = calls.names()
        warnings.simplefilter("ignore")
        for _, text in chosen:
            checker.label = text
            try:
                calls.finish(eval(text, known))
            except Exception as error:
                checker.counts["calls that raised"] += 1
                print(f"{text}: {type(error).__name__}: {str(error)[:160]}", flush=True)


def main(what: str, *arguments: str) -> None:
    os.environ["DPARRAY_KERNEL_STORE"] = ""
    os.environ["DPARRAY_BACKGROUND_COMPILE"] = "0"
    os.environ["DPARRAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="dparray-cuda-")
    from tests.cuda.launches import Checker

    checker = Checker(assembles="--without-ptxas" not in arguments)
    rest = [each for each in arguments if each != "--without-ptxas"]
    if what == "tests":
        check_tests(checker, rest)
    else:
        named = dict(zip(rest[::2], map(int, rest[1::2]), strict=True))
        check_calls(checker, named.get("--first", 0), named.get("--every", 1))
    print(*checker.faults, dict(checker.counts), sep="\n", flush=True)
    seconds = {key: round(value, 1) for key, value in checker.seconds.items()}
    print(f"seconds: {seconds}", flush=True)
    # The driver reads freed memory while a process ends.
    os._exit(bool(checker.faults))


if __name__ == "__main__":
    main(*sys.argv[1:])
