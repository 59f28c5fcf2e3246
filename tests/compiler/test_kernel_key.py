"""A kernel's key changes with everything that the compiler takes from the function."""

from __future__ import annotations

import collections
import enum
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dparray import _type_keys
from dparray._compiler import key as _kernel_key
from dparray._compiler.key import kernel_key
from tests.support import TARGET

PACKAGE = Path(_kernel_key.__file__).parents[1]
CONSTANT = 3
FIRST, SWAPPED = (collections.namedtuple("Pair", names) for names in ("x y", "y x"))
FIELDS, SWAPPED_FIELDS = (np.dtype([(name, "f4") for name in names]) for names in ("xy", "yx"))
TABLE = np.array([1.0, 2.0])
SETTINGS = types.ModuleType("settings")


class Mode(enum.IntEnum):
    FAST = 1


def key(function: Callable[..., Any], types: tuple[str, ...] = (), **options: Any) -> str | None:
    return kernel_key(function, types, options, TARGET)


def make(text: str, **names: Any) -> Any:
    scope: dict[str, Any] = dict(names)
    exec(text, scope)
    return scope["f"]


def test_the_same_function_has_the_same_key() -> None:
    text = "def f(item, x):\n    x[0] = N\n"
    assert key(make(text, N=1)) == key(make(text, N=1)) is not None


def test_functions_of_a_namespace_without_a_name() -> None:
    keys = [
        key(make(f"def g(x):\n    return x + {n}\ndef f(x):\n    return g(x)\n")) for n in (1, 1, 2)
    ]
    assert keys[0] == keys[1] != keys[2]


def test_comments_and_locations_do_not_count() -> None:
    assert key(make("def f(x):\n    return x\n")) == key(
        make("\n\n# why\ndef f(x):\n    return x\n")
    )


def test_locations_count_for_kernels_with_line_information() -> None:
    texts = ("def f(x):\n    return x\n", "\n\ndef f(x):\n    return x\n")
    first, second = (key(make(text), debug=True) for text in texts)
    assert first != second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (1.0, 1.0 + 2**-52),
        (float("nan"), 0.0),
        (np.float32(1), np.float64(1)),
        (np.dtype("f4"), np.dtype("f8")),
        (np.float32, np.float64),
        ((1, 2), (2, 1)),
        ((1, 2), [1, 2]),
        (np.zeros(2), np.ones(2)),
        (np.zeros(2, "f4"), np.zeros(2, "i4")),
        (np.zeros((2, 1)), np.zeros((1, 2))),
        ("add", "min"),
        (FIRST, SWAPPED),
        (FIRST(1, 2), SWAPPED(1, 2)),
        (FIELDS, SWAPPED_FIELDS),
        (np.ones(1, FIELDS), np.ones(1, SWAPPED_FIELDS)),
        (np.ones(1, FIELDS)[0], np.ones(1, SWAPPED_FIELDS)[0]),
        (None, 0),
    ],
)
def test_values_of_globals_and_captures_count(one: Any, other: Any) -> None:
    text = "def f(item, x):\n    x[0] = VALUE\n"
    assert key(make(text, VALUE=one)) != key(make(text, VALUE=other))
    keys = []
    for value in (one, other):
        closure = make(
            "def outer(v):\n    def f(item, x):\n        x[0] = v\n    return f\nf = outer(V)\n",
            V=value,
        )
        keys.append(key(closure))
    assert keys[0] != keys[1]


def test_closures_of_one_function_differ_by_captured_values() -> None:
    """numba-dpex issue 897: they had the same key in its cache, and results were wrong."""

    def make_kernel(scale: Any) -> Callable[..., None]:
        def kernel(item: Any, x: Any) -> None:
            x[0] = scale

        return kernel

    assert key(make_kernel(2)) != key(make_kernel(3))
    assert key(make_kernel(2)) == key(make_kernel(2))
    assert key(make_kernel(np.float32)) != key(make_kernel(np.float64))


def test_attributes_of_modules_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(item: Any, x: Any) -> None:
        x[0] = SETTINGS.width

    monkeypatch.setattr(SETTINGS, "width", 8, raising=False)
    eight = key(kernel)
    monkeypatch.setattr(SETTINGS, "width", 16)
    assert key(kernel) != eight


def test_attributes_that_the_function_does_not_use_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kernel(item: Any, x: Any) -> None:
        x[0] = SETTINGS.width

    monkeypatch.setattr(SETTINGS, "width", 8, raising=False)
    before = key(kernel)
    monkeypatch.setattr(SETTINGS, "height", 3, raising=False)
    assert key(kernel) == before


class Compiled:
    """Imitate a device function."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func = function
        self.options = options


def test_device_functions_count_with_all_they_call() -> None:
    inner = "def f(x):\n    return x + N\n"
    outer = "def f(x):\n    return inner(x)\n"
    kernel = "def f(item, x):\n    x[0] = outer(x[0])\n"

    def whole(n: int, **options: Any) -> str | None:
        innermost = Compiled(make(inner, N=n), **options)
        return key(make(kernel, outer=Compiled(make(outer, inner=innermost))))

    assert whole(1) == whole(1)
    assert whole(1) != whole(2)
    assert whole(1) != whole(1, inline_threshold=3)


def test_a_device_function_may_call_itself() -> None:
    recursive = make("def f(n):\n    return f(n - 1) if n else 0\n")
    recursive.__globals__["f"] = Compiled(recursive)
    assert key(recursive) is not None


def test_names_used_only_in_inner_functions_count() -> None:
    text = "def f(item, x):\n    x[0] = sum(N * i for i in range(3))\n"
    assert key(make(text, N=1)) != key(make(text, N=2))


def test_types_and_options_count() -> None:
    function = make("def f(item, x):\n    x[0] = 1\n")
    keys = {
        key(function, ("item:1", "f4:1C")),
        key(function, ("item:1", "f8:1C")),
        key(function, ("item:1", "f4:1A")),
        key(function, ("nditem:1", "f4:1C")),
        key(function, ("item:1", "f4:1C"), inline_threshold=1),
        key(function, ("item:1", "f4:1C"), inline_threshold=3),
    }
    assert len(keys) == 6


def test_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    function = make("def f(item, x):\n    x[0] = 1\n")
    keys = {key(function)}
    real = _kernel_key._versions()
    monkeypatch.setattr(_kernel_key, "_versions", lambda: (*real, ("llvmlite", "99")))
    keys.add(key(function))
    assert len(keys) == 2


def test_enumerations_count_by_their_members() -> None:
    text = "def f(item, x):\n    x[0] = Mode.FAST\n"
    other = enum.IntEnum("Mode", {"FAST": 2}, module=__name__)
    assert key(make(text, Mode=Mode)) != key(make(text, Mode=other))


class Rounded(float):
    def __repr__(self) -> str:
        return "1.0"


class Hidden(int):
    def __repr__(self) -> str:
        return "9"


ENUMERATED = [
    # Both values of each pair have the same repr.
    (np.array([0.1, 2.0]), np.array([0.1 + 1e-10, 2.0])),
    (np.zeros(2000), np.eye(1, 2000, 1000)[0]),
    (Rounded(1.25), Rounded(1.5)),
    (Hidden(3), Hidden(4)),
    ((Hidden(3), 1), (Hidden(4), 1)),
    (np.float64(1.25), np.float32(1.25)),
]


@pytest.mark.parametrize(("first", "second"), ENUMERATED, ids=str)
def test_members_of_enumerations_count_by_their_exact_values(first: Any, second: Any) -> None:
    by_member = "def f(item, x):\n    x[0] = member.value\n"
    by_class = "def f(item, x):\n    x[0] = Mode.FAST.value\n"
    classes = [enum.Enum("Mode", {"FAST": each}, module=__name__) for each in (first, second)]
    members = [each.FAST for each in classes]  # type: ignore[attr-defined]
    for keys in (
        [key(make(by_member, member=each)) for each in members],
        [key(make(by_class, Mode=each)) for each in classes],
    ):
        assert None not in keys
        assert keys[0] != keys[1]


@pytest.mark.parametrize(("first", "second"), ENUMERATED, ids=str)
def test_values_count_exactly_wherever_they_stand(first: Any, second: Any) -> None:
    by_name = "def f(item, x):\n    x[0] = value\n"
    by_default = "def f(item, x, n=value):\n    x[0] = n\n"
    by_module = "def f(item, x):\n    x[0] = settings.value\n"
    modules = [types.ModuleType("settings"), types.ModuleType("settings")]
    modules[0].value, modules[1].value = first, second  # type: ignore[attr-defined]

    def captured(value: Any) -> Any:
        return lambda item, x: value

    for keys in (
        [key(make(by_name, value=each)) for each in (first, second)],
        [key(make(by_default, value=each)) for each in (first, second)],
        [key(make(by_module, settings=each)) for each in modules],
        [key(captured(each)) for each in (first, second)],
    ):
        assert None not in keys
        assert keys[0] != keys[1]


def test_a_value_that_cannot_be_described_has_no_key() -> None:
    text = "def f(item, x):\n    x[0] = thing\n"
    assert key(make(text, thing=object())) is None
    assert key(make(text, thing=np.array([object()]))) is None


def test_a_value_captured_later_has_no_key() -> None:
    def outer() -> Callable[..., None]:
        def kernel(item: Any, x: Any) -> None:
            x[0] = later

        assert key(kernel) is None
        later = 3
        return kernel

    assert key(outer()) is not None


PROGRAM = """
import sys, types
package = types.ModuleType("dparray"); package.__path__ = [sys.argv[1]]
sys.modules["dparray"] = package
from dparray._compiler.key import kernel_key
from dparray._driver.interface import Target
import math
TAGS = {"b", "a", "c"}
def f(item, x):
    if x[0] in (1, 2, 3) or "a" in {"a", "b", "c", "d"}:
        x[0] = math.pi
print(kernel_key(f, ("item:1",), {}, Target("spirv64")))
"""


def test_the_key_is_the_same_in_every_process() -> None:
    keys = set()
    for seed in ("0", "1", "2"):
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        command = [sys.executable, "-c", PROGRAM, str(PACKAGE)]
        keys.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(keys) == 1
    assert keys != {b"None\n"}


def test_files_are_read_again_only_if_one_of_them_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_kernel_key, "_SETTLED_SECONDS", -1.0)  # The files may be new.
    files = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for file in files:
        file.write_text(f"NAME = {file.name!r}\n")
    opened: list[str] = []
    whole = os.open

    def recorded(path: Any, *arguments: Any) -> int:
        opened.append(str(path))
        return whole(path, *arguments)

    monkeypatch.setattr(os, "open", recorded)

    def digest_of(*some: Path) -> tuple[str, list[str]]:
        opened.clear()
        digest = _kernel_key._digest_of(list(map(str, some)))
        return digest, [Path(path).name for path in opened if path.endswith(".py")]

    first, read = digest_of(*files[:2])
    assert read == ["a.py", "b.py"]
    assert digest_of(*files[:2]) == (first, [])
    other, _ = digest_of(files[0], files[2])
    # An edit that keeps the size and restores the time of modification.
    before = files[1].stat()
    files[1].write_text("NAME = 'B.py'\n")
    os.utime(files[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert files[1].stat().st_size == before.st_size
    second, read = digest_of(*files[:2])
    assert second != first
    assert read == ["a.py", "b.py"]
    assert digest_of(files[0], files[2]) == (other, [])


def test_digests_of_files_changed_just_now_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "a.py"
    file.write_text("A = 1\n")
    digest = _kernel_key._digest_of([str(file)])
    assert digest == _kernel_key._digest_of([str(file)])
    assert not list(tmp_path.rglob("*.digest"))


def test_the_rules_of_types_are_in_the_key() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = x[i] + x[i]

    keys = set()
    for module in ("program", "dparray.kernels.own", "dparray.examples.own"):
        kernel.__module__ = module
        keys.add(str(_kernel_key.describe(kernel)))
    assert len(keys) == 2  # An example has the rules of users.


@pytest.mark.parametrize(
    "value", [0, -(2**63), True, None, "a:b", 0.1, np.inf, -0.0, (1, (2.5, "c")), np.float32]
)
def test_the_text_of_a_constant_gives_its_value(value: Any) -> None:
    found = _type_keys.value_of(_type_keys.text_of(value))
    assert type(found) is type(value)
    assert repr(found) == repr(value)
