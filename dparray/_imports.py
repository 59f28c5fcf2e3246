"""Imports: actions after them, modules in the place of missing ones, names that are made late."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], object]

_actions: dict[str, list[Action]] = {}


def when_imported(name: str, action: Action) -> None:
    """Call ``action`` with the module ``name``: now if it is imported, else right after it is."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    if not _actions:
        sys.meta_path.insert(0, _Teller())
    _actions.setdefault(name, []).append(action)


class _Teller:
    """Finds nothing itself; what others find is executed, and then told of."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                _tell_after(spec.loader, fullname)
                return spec
        return None


def _tell_after(loader: Any, name: str) -> None:
    execute = loader.exec_module

    def execute_and_tell(module: ModuleType) -> None:
        execute(module)
        for action in _actions[name]:
            action(module)

    loader.exec_module = execute_and_tell


class StandIn:
    """Finds modules that nothing before it has found, and makes them.

    Args:
        knows: whether a module is one of them.
        fill: gives a new one its names; or puts another into ``sys.modules`` in its place.
        make: makes an empty one of its name; a plain module if it is not given.
    """

    def __init__(
        self,
        knows: Callable[[str], bool],
        fill: Action,
        make: Callable[[str], ModuleType] | None = None,
    ) -> None:
        self._knows, self._fill, self._make = knows, fill, make

    def install(self) -> None:
        """Let it find modules from now on; cheap, idempotent."""
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the way to a module, for the import system."""
        if not self._knows(fullname):
            return None
        # No class of importlib.abc, whose import takes 25 ms.
        return importlib.machinery.ModuleSpec(
            fullname,
            self,  # type: ignore[arg-type]
            is_package=True,
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return an empty module."""
        return None if self._make is None else self._make(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give it its names."""
        self._fill(module)


def when_asked(
    owner: ModuleType,
    places: Mapping[str, str],
    prepare: Callable[[Any], Any],
    otherwise: Callable[[str], Any],
) -> None:
    """Let a module have names that are imported when they are first asked for.

    Args:
        owner: the module.
        places: by name the module it is, or ``"module:"`` that has the name.
        prepare: is called with what was imported, and gives what the name stands for.
        otherwise: is called with any other name, and raises.
    """

    def find(name: str) -> Any:
        if name not in places:
            return otherwise(name)
        place = places[name]
        found = importlib.import_module(place.removesuffix(":"))
        value = prepare(getattr(found, name) if place.endswith(":") else found)
        setattr(owner, name, value)
        return value

    owner.__getattr__ = find  # type: ignore[method-assign]
    owner.__dir__ = lambda: sorted({*vars(owner), *places})  # type: ignore[method-assign]
