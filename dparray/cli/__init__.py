"""The command ``dparray``: one sub-command for each tool.

A sub-command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the
requested one is imported, and none needs a working SYCL installation before it runs: ``dparray
doctor`` must start where ``import dparray`` fails. In: arguments. Out: text, and the exit status: 0
on success, 1 when the command failed or found a problem, 2 for wrong arguments. Imports: rows up to
``tools``, and ``PIL`` for pictures and ``llvmlite`` for its version.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from dparray import __version__
from dparray._runtime import startup
from dparray.exceptions import DparrayError


class Command(NamedTuple):
    """A sub-command: its name, the module that implements it, and a line for ``--help``."""

    name: str
    module: str
    summary: str
    needs_stack: bool = True


COMMANDS = (
    Command("demo", "dparray.cli.demo", "process a photograph, and check each stage against NumPy"),
    Command("info", "dparray.cli.info", "list devices, drivers, USM and dtype support", False),
    Command(
        "doctor",
        "dparray.cli.doctor",
        "check every part of the installation and print fixes",
        False,
    ),
    Command("bench", "dparray.cli.bench", "time dparray against NumPy and dpnp"),
    Command("profile", "dparray.cli.profile", "run a script and report where its time went"),
    Command(
        "warmup", "dparray.cli.warmup", "compile and cache the kernels that most programs need"
    ),
    Command("report", "dparray.cli.report", "write a file about a device, to send with a report"),
    Command("onnx", "dparray.cli.onnx", "check an ONNX model, show what it needs, time its nodes"),
    Command("cache", "dparray.cli.cache", "show or clear the disk cache of kernels", False),
)


def make_parser(chosen: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command; only the sub-command ``chosen`` has its arguments."""
    parser = argparse.ArgumentParser(
        prog="dparray",
        description="Data-parallel arrays and kernels in Python, where compute follows data.",
        epilog="`dparray COMMAND --help` describes one command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dparray {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # `--clea` must not clear
        )
        if command.name == chosen:
            module = importlib.import_module(command.module)
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: ``sys.argv[1:]``); return the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    name = next((word for word in argv if not word.startswith("-")), None)
    command = next((command for command in COMMANDS if command.name == name), None)
    try:
        if command is not None and command.needs_stack and startup.failure is not None:
            if not {"-h", "--help"} & set(argv):
                return _fail(command.name, startup.failure)
            command = None
        parser = make_parser(command.name if command else None)
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help()
            return 0
        return int(arguments.run(arguments))
    except DparrayError as error:
        return _fail(name, error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) has exited; the rest of the buffer must not be written either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _fail(name: str | None, error: BaseException) -> int:
    print(f"dparray {name}: {error}", file=sys.stderr)
    return 1
