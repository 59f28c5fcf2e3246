"""Progress bars with tqdm: large copies, saves and loads, compiling many kernels."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from dparray import _hooks

#: Shorter work shows no bar.
PATIENCE = 1.0


class Progress:
    """Shows progress of long work from the event hook, and removes the bar when it is done.

    State: at most one bar for bytes and one counter of kernels; :meth:`close` ends both, even after
    an error or an interrupt during the work.
    """

    def __init__(self) -> None:
        self._copy: Any = None
        self._task = ""
        self._kernels: Any = None
        self._count = 0
        self._seconds = 0.0
        if importlib.util.find_spec("tqdm") is None:
            # Without it no bar is shown, and no event is subscribed that would cost time.
            print("dparray: no progress bars without tqdm: pip install tqdm", file=sys.stderr)
            self._unsubscribe: Any = lambda: None
            return
        self._unsubscribe = _hooks.subscribe(self._on_event)

    def _on_event(self, event: str, **values: Any) -> None:
        if event == "progress":
            self._on_copy(**values)
        elif event == "compile" and values["origin"] == "compiled":
            self._on_compiled(values["seconds"])

    def _on_copy(self, task: str, done: int, total: int) -> None:
        if self._copy is not None and self._task != task:  # The previous work ended with an error.
            self._copy.close()
            self._copy = None
        if self._copy is None:
            self._task = task
            self._copy = _bar(
                desc=task, total=total, unit="B", unit_scale=True, unit_divisor=1024, delay=PATIENCE
            )
        self._copy.update(done - self._copy.n)
        if done == total:
            self._copy.close()
            self._copy = None

    def _on_compiled(self, seconds: float) -> None:
        self._count += 1
        self._seconds += seconds
        if self._seconds < PATIENCE:
            return
        if self._kernels is None:
            form = "{desc}: {n_fmt}{postfix}"  # The total is unknown.
            self._kernels = _bar(desc="kernels compiled", bar_format=form, initial=self._count - 1)
        self._kernels.set_postfix_str(f"in {self._seconds:.1f} s", refresh=False)
        self._kernels.n = self._count
        self._kernels.refresh()

    def close(self) -> None:
        """Remove the bars and start counting again."""
        for bar in (self._copy, self._kernels):
            if bar is not None:
                bar.close()
        self._copy = self._kernels = None
        self._count, self._seconds = 0, 0.0

    def stop(self) -> None:
        """Stop showing progress."""
        self._unsubscribe()
        self.close()


def _bar(**options: Any) -> Any:
    if "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm

        # Unlike the terminal's bar, the notebook's bar does not read this variable.
        options["disable"] = bool(os.environ.get("TQDM_DISABLE"))
    else:
        from tqdm import tqdm
    return tqdm(leave=False, file=sys.stdout, **options)
