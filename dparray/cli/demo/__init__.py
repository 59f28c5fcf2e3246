"""The image pipeline: ``dparray demo``.

It takes a photograph, computes its luminance and gradient with array functions, a blur with a
kernel that uses local memory, and a palette by k-means; it compares each stage with NumPy, writes
a picture and prints a table. ``pipeline`` is the part to read: what the library looks like in use.

Exit status: 0 when all stages agree with NumPy, 1 when one does not or the picture cannot be
written, 2 when the command was called wrongly (no such image, device, directory).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dparray.cli.demo import photograph, picture, stages
from dparray.device import Device, describe_device, describe_queue
from dparray.exceptions import DeviceError, DparrayError

__all__ = ["add_arguments", "main", "run"]

_SUB_DEVICE = "sub-device:"
_EPILOG = f"""\
IMAGE is a file, or one of the photographs in scikit-image: {", ".join(photograph.SHIPPED)}.

DEVICE is a SYCL filter string (cpu, gpu, opencl:cpu:0), or such a string with a sub-device of one
compute unit: sub-device:0, cpu/sub-device:1.
"""


def _whole(least: int, most: int) -> Callable[[str], int]:
    """A type for argparse: a whole number between two limits."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least} to {most}"
            )
        return value

    return parse


def _sigma(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.3 <= value <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.3 to 10")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the arguments of the demo."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("image", nargs="?", default=photograph.DEFAULT, help="photograph (default: %(default)s)")
    add("--device", help="where to run (default: the default device)")
    add(
        "--usm-type",
        choices=("device", "shared", "host"),
        default="device",
        help="kind of memory (default: %(default)s)",
    )
    add(
        "--output",
        type=Path,
        default=Path("dparray-demo.png"),
        metavar="FILE.png",
        help="the picture (default: %(default)s)",
    )
    add(
        "--colors",
        "--colours",
        dest="colours",
        type=_whole(1, 256),
        default=16,
        metavar="N",
        help="colours of the palette, 1 to 256 (default: %(default)s)",
    )
    add(
        "--iterations",
        type=_whole(1, 1000),
        default=10,
        metavar="N",
        help="rounds of k-means (default: %(default)s)",
    )
    add(
        "--blur",
        dest="sigma",
        type=_sigma,
        default=3.0,
        metavar="PIXELS",
        help="standard deviation of the blur, 0.3 to 10 (default: %(default)s)",
    )
    add(
        "--repeat",
        type=_whole(1, 1000),
        default=7,
        metavar="N",
        help="warm runs, of which the median is shown (default: %(default)s)",
    )
    add(
        "--width",
        type=_whole(200, 8000),
        default=1500,
        metavar="PIXELS",
        help="width of the picture (default: %(default)s)",
    )
    add("--json", action="store_true", help="print the results as JSON")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo with ``argv`` (``sys.argv[1:]`` if not given); returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="dparray demo", description="Run the image pipeline on a photograph."
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Run the demo with parsed arguments; returns the exit status."""
    try:
        output = _checked_output(arguments.output)
        path = photograph.find(arguments.image)
        rgb = photograph.read(path)
        settings = stages.Settings(
            device=_device(arguments.device),
            usm_type=arguments.usm_type,
            colours=arguments.colours,
            iterations=arguments.iterations,
            sigma=arguments.sigma,
            runs=arguments.repeat,
        )
    except (photograph.PhotographError, DparrayError, OSError) as error:
        return _fail(error, 2)
    try:
        measured = _with_progress(rgb, settings)
    except DparrayError as error:
        return _fail(error, 1)
    console = _console(sys.stdout)
    if not arguments.json:
        console.print(_table(measured, path, rgb, settings))
        console.print(_notes(measured, settings), style="dim", highlight=False)
    try:
        picture.write(_picture(measured, path, rgb, arguments.width), output)
    except OSError as error:
        return _fail(f"{output} cannot be written: {error}", 1)
    if arguments.json:
        print(json.dumps(_as_json(measured, path, output), indent=2))
    else:
        console.print(f"picture: {output}", highlight=False, soft_wrap=True)
    wrong = [m.stage for m in measured if not m.agrees]
    if wrong:
        return _fail(
            f"not what NumPy computes: {', '.join(wrong)}; `dparray doctor` may tell why", 1
        )
    return 0


def _fail(error: object, status: int) -> int:
    print(f"dparray demo: {error}", file=sys.stderr)
    return status


def _checked_output(path: Path) -> Path:
    """The path, if a file can be made there: found out before anything is computed."""
    path = path.expanduser()
    if path.is_dir():
        raise OSError(f"--output: {path} is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise OSError(f"--output: there is no directory {path.parent}; make it first")
    if path.suffix.lower() != ".png":
        raise OSError(f"--output: {path} must end in .png, which is what is written")
    return path


def _device(text: str | None) -> Device:
    """The device that ``--device`` names, which may be a sub-device."""
    if text is None or _SUB_DEVICE not in text:
        return Device(text)
    whole, _, number = text.partition(_SUB_DEVICE)
    parts = Device(whole.rstrip("/") or None).create_sub_devices(partition=1)
    if not number.isdecimal() or int(number) >= len(parts):
        raise DeviceError(
            f"device: {text!r}: sub-devices are numbered from 0 to {len(parts) - 1}; "
            f"give for example {whole}{_SUB_DEVICE}0"
        )
    return parts[int(number)]


def _console(file: Any) -> Console:
    # Where there is no terminal, rich would cut tables at 80 columns.
    console = Console(file=file)
    return console if console.is_terminal else Console(file=file, width=132)


def _with_progress(rgb: np.ndarray, settings: stages.Settings) -> list[stages.Measurement]:
    """The measurements of all stages, with a progress bar on the terminal meanwhile."""
    columns = (TextColumn("{task.description:24}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console(sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=len(stages.STAGES) * len(stages.STEPS))
        done = -1

        def step(stage: str, what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, description=f"{stage}: {what}", completed=done)

        return list(stages.measure(rgb, settings, step))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.2f} ms"


def _table(
    measured: Sequence[stages.Measurement], path: Path, rgb: np.ndarray, settings: stages.Settings
) -> Table:
    height, width = rgb.shape[:2]
    table = Table(
        title=f"{path.name}, {width} x {height} pixels, on {settings.device.name}",
        title_justify="left",
    )
    for heading in ("stage", "made of", "device", "queue", "USM type"):
        table.add_column(heading)
    for heading in ("dparray", "NumPy", "largest difference", "allowed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for m in measured:
        device = describe_device(m.queue.sycl_device)
        table.add_row(
            m.stage,
            m.means,
            device,
            describe_queue(m.queue).removeprefix(f"{device}, "),
            m.usm_type,
            _milliseconds(m.seconds),
            _milliseconds(m.numpy_seconds),
            f"{m.difference:.2g}",
            f"{m.tolerance:.2g}",
            style=None if m.agrees else "bold red",
        )
    return table


def _as_json(measured: Sequence[stages.Measurement], path: Path, output: Path) -> dict[str, Any]:
    return {
        "image": str(path),
        "picture": str(output),
        "stages": [
            {
                "stage": m.stage,
                "made_of": m.means,
                "device": describe_device(m.queue.sycl_device),
                "usm_type": m.usm_type,
                "first_seconds": m.first,
                "seconds": m.seconds,
                "numpy_seconds": m.numpy_seconds,
                "difference": float(m.difference),
                "tolerance": m.tolerance,
                "agrees": bool(m.agrees),
            }
            for m in measured
        ],
    }


def _notes(measured: Sequence[stages.Measurement], settings: stages.Settings) -> str:
    first = sum(m.first for m in measured)
    return (
        f"Times: median of {settings.runs} runs until the result is there, after "
        f"{stages.WARM_UP_SECONDS} s of warming up (NumPy: median of "
        f"{min(settings.runs, stages.NUMPY_RUNS)}). The first runs, which compile kernels or read "
        f"them from the cache, took {first:.2f} s together. Differences are in grey levels of 255, "
        f"those of luminance and gradient in parts of white."
    )


def _picture(
    measured: Sequence[stages.Measurement], path: Path, rgb: np.ndarray, width: int
) -> Any:
    results = {m.stage: m.result for m in measured}
    colours, labels = results["quantise"]
    counts = np.bincount(labels.reshape(-1), minlength=len(colours))
    quantised = colours[labels].transpose(2, 0, 1)
    height, image_width = rgb.shape[:2]
    parts = [
        ("original", f"{path.name}, {image_width} x {height}", picture.colour(results["copy"][0])),
        ("luminance", "array functions", picture.grey(results["luminance"][0])),
        ("gradient", "array functions on views", picture.pencil(results["gradient"][0])),
        ("blur", "kernel: tiles in local memory", picture.colour(results["blur"][0])),
        (
            f"{len(colours)} colours",
            "kernels: k-means over work-groups",
            picture.colour(quantised),
        ),
        (
            "palette",
            "width: share of the pixels",
            picture.palette(colours, counts, (image_width, height)),
        ),
    ]
    return picture.panels(parts, width)
