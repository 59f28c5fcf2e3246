"""``--changed`` runs the tests that call changed files and lists those that had to be left out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import changed

pytest_plugins = ["pytester"]

FILES = {
    ".gitignore": "build\n__pycache__\nrunpytest*\nstd*\n",
    "conftest.py": Path(changed.__file__).read_text(),
    "dparray/__init__.py": "",
    "dparray/work.py": "def answer():\n    return 42\n",
    "dparray/_one/more.py": "def half():\n    return 21\n",
    "tests/test_tiny.py": "def test_tiny():\n    pass\n",
    "tests/one/test_one.py": "def test_one():\n    pass\n",
    "tests/two/test_two.py": (
        "from dparray.work import answer\n\ndef test_two():\n    assert answer() == 42\n"
    ),
}


@pytest.fixture
def run(pytester: Any) -> Any:
    """Return a function that runs pytest in a repository with two files and their tests."""
    for name, text in FILES.items():
        (pytester.path / name).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / name).write_text(text)
    for command in ("init", "add .", "-c user.name=A -c user.email=a@b commit --message=First"):
        subprocess.run(["git", *command.split()], check=True, cwd=pytester.path)
    return lambda *options: pytester.runpytest_subprocess("-v", *options)


@pytest.mark.process
def test_a_changed_file_has_the_tests_that_call_it(run: Any, pytester: Any) -> None:
    assert "no file differs from HEAD" in run("--changed").stderr.str()
    (pytester.path / "dparray" / "work.py").write_text(FILES["dparray/work.py"] + "#\n")
    result = run("--changed")
    assert "no record of tests that call dparray/work.py; taken: no folder" in result.stdout.str()
    result.assert_outcomes(passed=1)
    (pytester.path / "dparray" / "_one" / "more.py").write_text("")
    result = run("--changed")
    assert "that call dparray/_one/more.py; taken: tests/one" in result.stdout.str()
    result.assert_outcomes(passed=2)
    run("--record-calls").assert_outcomes(passed=3)
    result = run("--changed")
    result.assert_outcomes(passed=3)
    assert "test_two.py" in result.stdout.str()
    assert "cases left out after 150 s: 0, files: 0" in result.stdout.str()


@pytest.mark.process
def test_after_the_time_the_rest_is_left_out_and_listed(run: Any, pytester: Any) -> None:
    text = FILES["conftest.py"].replace("SECONDS = 150", "SECONDS = -1")
    (pytester.path / "conftest.py").write_text(text)
    result = run("--changed")
    result.assert_outcomes(skipped=1)
    assert "s: 1, files: 1\n  tests/test_tiny.py" in result.stdout.str()
