"""``dparray profile``: run a script and report where its time went."""

from __future__ import annotations

import argparse
import contextlib
import json
import runpy
import sys
from pathlib import Path
from types import TracebackType

import dparray as dp
from dparray._profile.profile import MAX_ROWS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray profile``."""
    parser.add_argument("--trace", metavar="PATH", help="write a trace for ui.perfetto.dev")
    parser.add_argument(
        "--rows",
        type=int,
        default=MAX_ROWS,
        metavar="N",
        help="number of rows, the longest times first (default: %(default)s)",
    )
    parser.add_argument("--plot", metavar="PATH", help="write a timeline as SVG")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print as JSON; output of the script goes to stderr",
    )
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(arguments: argparse.Namespace) -> int:
    """Run the script under a profile; print its exception after the table, as Python does."""
    script = Path(arguments.script)
    if not script.is_file():
        print(f"dparray profile: there is no file {str(script)!r}", file=sys.stderr)
        return 1
    for name in filter(None, (arguments.trace, arguments.plot)):
        if not Path(name).resolve().parent.is_dir():  # Reported before the script runs, not after.
            print(f"dparray profile: there is no folder for {name!r}", file=sys.stderr)
            return 1
    sys.argv = [str(script), *arguments.arguments]
    sys.path.insert(0, str(script.resolve().parent))
    recorded = dp.profile()
    failure: BaseException | None = None
    try:
        with (
            contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext(),
            recorded,
        ):
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        failure = error
    finally:
        if arguments.json:
            print(json.dumps([row._asdict() for row in recorded.rows], indent=2))
        else:
            print(recorded.text(arguments.rows))
        if arguments.trace:
            recorded.to_chrome_trace(arguments.trace)
        if arguments.plot:
            recorded.plot().save(arguments.plot)
    if failure is None:
        return 0
    sys.stdout.flush()
    frames = _within(str(script), failure.__traceback__)
    sys.excepthook(type(failure), failure.with_traceback(frames), frames)
    return 130 if isinstance(failure, KeyboardInterrupt) else 1


def _within(script: str, frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the script's first frame on; ``None`` if the script did not start."""
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    return frames
