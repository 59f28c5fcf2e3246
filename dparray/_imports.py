"""Import hooks: actions after imports, replacements of missing modules, lazily imported names."""

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
    """Call ``action`` with the module ``name``: now if it is imported, otherwise right after its
    import.
    """
    if name in sys.modules:
        action(sys.modules[name])
        return
    if not _actions:
        sys.meta_path.insert(0, _Teller())
    _actions.setdefault(name, []).append(action)


class _Teller:
    """A finder that lets other finders load modules, and then calls the actions."""

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
    """A finder and loader for modules that no earlier finder has found.

    Args:
        knows: whether it provides a module name.
        fill: sets the names of a new module, or replaces it in ``sys.modules``.
        make: creates an empty module of a given name; by default a plain module.
    """

    def __init__(
        self,
        knows: Callable[[str], bool],
        fill: Action,
        make: Callable[[str], ModuleType] | None = None,
    ) -> None:
        self._knows, self._fill, self._make = knows, fill, make

    def install(self) -> None:
        """Start to find modules. Cheap and idempotent."""
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a missing module, for the import system."""
        if not self._knows(fullname):
            return None
        # Not a class of importlib.abc, whose import takes 25 ms.
        return importlib.machinery.ModuleSpec(
            fullname,
            self,  # type: ignore[arg-type]
            is_package=True,
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return an empty module."""
        return None if self._make is None else self._make(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Set the names of the module."""
        self._fill(module)


def when_asked(
    owner: ModuleType,
    places: Mapping[str, str],
    prepare: Callable[[Any], Any],
    otherwise: Callable[[str], Any],
) -> None:
    """Make names of a module import their values at their first use.

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
        module = importlib.import_module(place.removesuffix(":"))
        value = prepare(getattr(module, name) if place.endswith(":") else module)
        setattr(owner, name, value)
        return value

    owner.__getattr__ = find  # type: ignore[method-assign]
    owner.__dir__ = lambda: sorted({*vars(owner), *places})  # type: ignore[method-assign]


def refuse_calls(name: str, instead: str) -> None:
    """Make calls of a module raise an error that suggests the intended line.

    Args:
        name: the name of the imported module.
        instead: the call of a function or class in it.
    """
    short = name.replace("dparray", "dp", 1)

    class Module(ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> None:
            line = instead
            if arguments and all(isinstance(value, str | int | tuple) for value in arguments):
                texts = [f'"{value}"' if type(value) is str else repr(value) for value in arguments]
                line = f"{instead.partition('(')[0]}({', '.join(texts)})"
            raise TypeError(f"{short} is a module, not a function; write {line}")

        def __reduce__(self) -> tuple[Any, ...]:  # cloudpickle only knows plain modules
            return importlib.import_module, (name,)

    sys.modules[name].__class__ = Module
