"""Report an error if a dependency of dparray cannot be imported.

``import dparray`` then fails with a message that includes the fix. The command ``dparray`` is the
one exception: it starts anyway, because ``dparray doctor`` must report the broken dependency.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The error that kept the package from being imported, if only the command was allowed to start.
failure: ImportError | None = None


@contextmanager
def explained() -> Iterator[None]:
    """Let a failed import inside the block raise with advice, or continue if the command starts.

    Raises:
        ImportError: an import inside the block failed, and the command is not starting.
    """
    global failure
    try:
        yield
    except Exception as error:
        explanation = ImportError(
            f"dparray cannot be imported: {type(error).__name__}: {error}. "
            "`dparray doctor` checks every dependency and prints the fix"
        )
        if not _command_is_starting():
            raise explanation from error
        failure = explanation


def _command_is_starting() -> bool:
    # While `python -m dparray` imports the package, argv[0] is "-m" and not the script.
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    return Path(script).name in {"-m", "dparray"}
