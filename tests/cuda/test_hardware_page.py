"""The results of ``hardware.py`` become tables, and choose forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cuda import hardware_page
from tests.cuda.hardware_page import OPTIONS, PAGE, ROOT


def results(**forms: Any) -> dict[str, Any]:
    device = {"dparray": 50.0, "torch": 60.0, "triton": 40.0}
    times = {"dparray": 108.2, "torch": 3.21, "on the device": device, "errors": {"jax": "none"}}
    parts = {"times": {"sum": times, "library jax": "not measured"}, "forms": forms}
    named = {name: {"results": each} for name, each in parts.items()}
    return {"parts": named, "tiny": False, "standin": False}


def test_the_table_of_the_page_is_replaced() -> None:
    new = hardware_page.table(results()["parts"]["times"]["results"])
    assert new.splitlines()[-1] == "| sum | 108 |  | 3.2 |  |  |  | 50 | 0.80 (triton) |"
    page = PAGE.read_text()
    changed = hardware_page.with_table(page, new)
    assert new in changed
    assert len(page.splitlines()) - len(changed.splitlines()) == 20  # the other rows
    assert hardware_page.with_table(changed, new) == changed


@pytest.mark.parametrize("option", OPTIONS, ids=lambda each: each.line.strip())
def test_the_default_of_each_form_is_set_in_one_line(option: hardware_page.Option) -> None:
    text = (ROOT / option.file).read_text()
    default, *others = option.values
    assert hardware_page.with_default(text, option, default) == text
    for form in others:
        changed = hardware_page.with_default(text, option, form)
        assert changed != text
        assert hardware_page.with_default(changed, option, default) == text


def test_a_form_is_chosen_if_it_is_clearly_faster() -> None:
    def row(first: float, second: float) -> dict[str, Any]:
        times = {"look-back": first, "three launches": second}
        return {form: {"us": 1000.0, "device us": us} for form, us in times.items()}

    for second, expected in ((98.0, "look-back"), (90.0, "three launches")):
        forms = {"sum": row(100, 100), "selection": row(100, second * second / 100)}
        found = hardware_page.choices(hardware_page.forms_of(results(**forms)))
        assert [form for _, form, _ in found] == [expected]


def test_the_stand_in_decides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps(results() | {"standin": True}))
    assert hardware_page.main([str(file)]) == 0
    assert hardware_page.main([str(file), "--write"]) == 1
    assert hardware_page.main([str(file), "--choose"]) == 1
