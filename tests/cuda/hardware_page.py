"""Turn the results of ``hardware.py`` into the tables of a page, and choose forms by them.

    python -m tests.cuda.hardware_page results.json

prints tables and choices. ``--write`` replaces the table of the page, ``--choose`` sets the
defaults of forms.

A form becomes the default if it is clearly faster on the device in the mean over its rows.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "notebooks" / "project" / "benchmarks.md"
#: A form must take at most this share of the default's time to replace it.
CLEARLY = 0.97

_LIBRARIES = {"cupy": "CuPy", "torch": "torch", "torch.compile": "torch.compile", "jax": "JAX"}
_LIBRARIES |= {"triton": "Triton"}
_TITLES = {
    "chain float32": "`x * y + x - y * 2`, float32",
    "chain float64": "the same, float64",
    "chain float16": "the same, float16",
    "Black-Scholes float32": "Black-Scholes, float32",
    "Black-Scholes float64": "Black-Scholes, float64",
    "Black-Scholes float16": "Black-Scholes, float16",
    "copy": "copy",
    "sum": "sum",
    "row norms": "norms of rows",
    "softmax": "softmax of rows",
    "column sums": "sums of columns",
    "2-D stencil by slices": "2-D stencil by slices",
    "3-D stencil by slices": "3-D stencil by slices",
    "cumulative sum": "cumulative sum",
    "exclusive scan": "exclusive scan",
    "histogram": "histogram, 100 bins",
    "mask": "`x[x > 1]`",
    "sort": "sort",
    "matmul": "matrix product, 1024 x 1024",
    "transposition": "transposed copy",
    "time step of 10 operations": "10 operations on 10,000 elements",
}
_HEAD = "| | dparray | " + " | ".join(_LIBRARIES.values())
_HEAD += " | dparray, on the device | others, on the device |"


class Option(NamedTuple):
    """An option that selects a form.

    Attributes:
        file: the file with its default.
        line: the line that sets it, with ``{}`` for the value.
        values: the value for each form, the present default first.
    """

    file: str
    line: str
    values: dict[str, str]


OPTIONS = (
    Option(
        "dparray/algorithms/tiles.py",
        "LOOKS_BACK = {}",
        {"look-back": "True", "three launches": "False"},
    ),
    Option(
        "dparray/algorithms/quantiles.py",
        "SELECTS = {}",
        {"by digits": "True", "sorted": "False"},
    ),
    Option(
        "dparray/algorithms/tiled_transpose.py",
        "_SIDE = {}",
        {"64 x 64": "64", "32 x 32": "32"},
    ),
    Option(
        "dparray/config.py",
        "    bytes_in_flight: int = {}",
        {"16 bytes": "16", "32 bytes": "32", "1 bytes": "1"},
    ),
)


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def table(times: dict[str, Any]) -> str:
    """Return the table of times, in microseconds, with the best of the others on the device."""
    lines = [_HEAD, "|---|" + "--:|" * (_HEAD.count("|") - 2)]
    for name, title in _TITLES.items():
        row = times.get(name)
        if not isinstance(row, dict):
            continue
        device = row.get("on the device", {})
        own, others = device.get("dparray"), {k: v for k, v in device.items() if k in _LIBRARIES}
        best = min(others, key=others.__getitem__, default="")
        ratio = f"{others[best] / own:.2f} ({best})" if best and own else ""
        cells = [title, *(_number(row.get(each)) for each in ("dparray", *_LIBRARIES))]
        lines.append(f"| {' | '.join([*cells, _number(own), ratio])} |")
    return "\n".join(lines)


def forms_of(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the microseconds on the device of each form in each row."""
    found: dict[str, dict[str, float]] = {}
    for part in ("forms", "expressions"):
        for name, forms in results["parts"].get(part, {}).get("results", {}).items():
            if "error" not in forms:
                found[name] = {
                    form: times.get("device us") or times["us"] for form, times in forms.items()
                }
    return found


def choices(forms: dict[str, dict[str, float]]) -> list[tuple[Option, str, float]]:
    """Return the options, their best form, and its time relative to the default's."""
    found = []
    for option in OPTIONS:
        default = next(iter(option.values))
        rows = [times for times in forms.values() if default in times]
        ratios = {
            form: geometric_mean([times[form] / times[default] for times in rows])
            for form in option.values
            if rows and all(form in times for times in rows)
        }
        if ratios:
            best = min(ratios, key=ratios.__getitem__)
            is_clear = ratios[best] <= CLEARLY
            found.append((option, best if is_clear else default, ratios[best] if is_clear else 1))
    return found


def with_default(text: str, option: Option, form: str) -> str:
    """Return the text of an option's file with a form as the default."""
    before, after = re.escape(option.line).split(r"\{\}")
    known = "|".join(map(re.escape, option.values.values()))
    pattern = f"^({before})({known})({after})$"
    changed, count = re.subn(pattern, rf"\g<1>{option.values[form]}\g<3>", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{option.file}: expected one line {option.line!r}, found {count}")
    return changed


def with_table(page: str, new: str) -> str:
    """Return the text of the page with another table of times."""
    start = page.index(_HEAD)
    return page[:start] + new + page[page.index("\n\n", start) :]


def main(arguments: list[str] | None = None) -> int:
    """Print tables and choices; write them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="the file that hardware.py wrote")
    parser.add_argument("--write", action="store_true", help="replace the table of the page")
    parser.add_argument("--choose", action="store_true", help="set the defaults of forms")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text())
    if (options.write or options.choose) and (results["standin"] or results["tiny"]):
        print("results of the stand-in or of small sizes decide nothing")
        return 1
    new, forms = table(results["parts"].get("times", {}).get("results", {})), forms_of(results)
    print(new, "\n")
    for name, times in forms.items():
        print(f"{name}: {'; '.join(f'{form} {_number(us)}' for form, us in times.items())}")
    for option, form, ratio in choices(forms):
        print(f"{option.file}: {option.line.strip().format(option.values[form])} ({ratio:.2f})")
        if options.choose:
            path = ROOT / option.file
            path.write_text(with_default(path.read_text(), option, form))
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(), new))
    return 0


if __name__ == "__main__":
    sys.exit(main())
