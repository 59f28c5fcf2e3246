"""Look up a library's functions by NumPy's names."""

from __future__ import annotations

from typing import Any


class Names:
    """The functions of a module of a library, looked up when they are first used."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = self._found(f"{self._path}.{name}".lstrip("."))
        setattr(self, name, function)
        return function

    def _found(self, path: str) -> Any:
        """Return the function or the submodule at a path, such as ``linalg.inv``."""
        raise NotImplementedError
