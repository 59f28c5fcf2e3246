"""The error where the stack below dparray cannot be imported.

``import dparray`` then fails, with a line that says what to do, and one exception: the command
``dparray`` starts nevertheless, because ``dparray doctor`` has to say which link is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Why the package could not be imported whole, where only the command was allowed to start.
failure: ImportError | None = None


@contextmanager
def explained() -> Iterator[None]:
    """Let an import inside the block fail with the remedy, or not at all for the command.

    Raises:
        ImportError: something inside the block failed, and the command is not starting.
    """
    global failure
    try:
        yield
    except Exception as error:
        explanation = ImportError(
            f"dparray cannot be imported: {type(error).__name__}: {error}. "
            "`dparray doctor` checks every link of the stack and says what to do"
        )
        if not _command_is_starting():
            raise explanation from error
        failure = explanation


def _command_is_starting() -> bool:
    # While `python -m dparray` imports the package, "-m" stands in the place of the script.
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    return Path(script).name in {"-m", "dparray"}
