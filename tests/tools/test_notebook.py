"""Rich displays of arrays, devices, memory, kernels and errors in notebooks, and the magics."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import dparray as dp
from dparray import _hooks
from dparray._evaluate import peek as _sample
from dparray._notebook import progress as _progress
from dparray._notebook.magics import device_names, time_statement
from dparray._notebook.pictures import png
from dparray.memory import copies, pinned


class Text(HTMLParser):
    """Parse the text and the elements of HTML; fail if elements are not closed in order."""

    VOID = frozenset({"img", "path", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"

    def names(self) -> set[str]:
        return {name for name, _ in self.elements}


def shown(value: Any) -> Text:
    return Text(value._repr_html_())


def picture(html: Text, kind: str) -> bytes:
    """Return the path of the picture of a rich display."""
    (source,) = [attrs["src"] for name, attrs in html.elements if name == "img"]
    assert source is not None
    head, _, data = source.partition(",")
    assert head == f"data:image/{kind};base64"
    return base64.b64decode(data)


def pixels(html: Text) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture(html, "png"))))


def line(html: Text) -> dict[str, str]:
    """Return the attributes of the line in the picture of a rich display."""
    (path,) = ElementTree.fromstring(picture(html, "svg+xml"))
    return path.attrib


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors as WCAG 2 defines it."""

    def luminance(color: str) -> float:
        parts = np.frombuffer(bytes.fromhex(color.removeprefix("#")), np.uint8) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


#: The backgrounds of notebooks in light and dark themes.
PAGES = ("#ffffff", "#111111")


@pytest.fixture
def events() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Record every launch, allocation and copy during the test."""
    seen: list[tuple[str, dict[str, Any]]] = []
    unsubscribe = _hooks.subscribe(lambda event, **values: seen.append((event, values)))
    yield seen
    unsubscribe()


# -- arrays ---------------------------------------------------------------------------------------


def test_a_rich_display_shows_an_array_and_its_placement(queue: Any) -> None:
    x = dp.asarray(np.arange(6.0).reshape(2, 3), sycl_queue=queue, usm_type="shared")
    text = shown(x).text
    for fact in ("(2, 3)", "float64", "shared", "48 B", "computed"):
        assert fact in text
    for fact in dp.device.describe_queue(queue).rsplit(", ", 1):
        assert fact in text
    assert "[[0., 1., 2.],\n [3., 4., 5.]]" in text


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (1,), (20,), (5, 7), (9, 9, 3), (2, 3, 4, 5)])
def test_arrays_of_any_shape_and_dtype_have_a_rich_display(
    shape: tuple[int, ...], dtype: str
) -> None:
    x = dp.zeros(shape, dtype=dtype)
    text = shown(x).text
    assert str(shape) in text
    assert dtype in text


def test_a_corner_is_shown_of_a_large_array() -> None:
    text = shown(dp.arange(1_000_000)).text
    assert re.search(r"\[\s+0,\s+1,\s+2, \.\.\., 999997, 999998, 999999\]", text)


@pytest.mark.parametrize("is_pending", [False, True])
def test_ten_gigabytes_are_shown_immediately_and_few_of_them_are_read(
    is_pending: bool, events: list[Any]
) -> None:
    x = dp.broadcast_to(dp.asarray(np.arange(50_000, dtype="float32")), (50_000, 50_000))
    if is_pending:
        x = dp.sqrt(x) * x.T
    assert x.nbytes == 10_000_000_000
    events.clear()
    start = time.perf_counter()
    text = shown(x).text
    assert "..., " in repr(x)
    assert time.perf_counter() - start < 20
    assert x.is_pending == is_pending
    assert "9.3 GiB" in text
    for event in ("copy", "allocate"):
        assert sum(values["nbytes"] for kind, values in events if kind == event) < 1_000_000
    assert not [event for event, _ in events if event == "launch"]


def test_a_pending_array_stays_pending_and_only_a_sample_of_it_is_computed(
    events: list[Any],
) -> None:
    x = dp.asarray(np.linspace(0, 20, 2_000_000))
    y = dp.sin(x) * dp.exp(-x / 8)
    events.clear()
    text = shown(y).text
    assert y.is_pending
    assert repr(y).startswith("array([0.")  # a notebook asks for this, too
    assert y.is_pending
    assert re.search(r"pending: .*sin.*multiply.* \(5 operations\)", text)
    assert "[0." in text
    for event, values in events:
        assert event in ("allocate", "copy", "evaluate", "host", "wait")
        assert values.get("nbytes", 0) < 10_000


@pytest.mark.usefixtures("tests_options")
def test_the_sample_of_a_pending_array_holds_the_values_it_will_have() -> None:
    rows, columns = dp.arange(300.0)[:, None], dp.arange(500, dtype="int32")
    x = dp.where(columns % 2 == 0, dp.sqrt(rows + 1), columns * 0.5) - rows
    index = (slice(3, 290, 41), slice(None, None, 7))
    peek = _sample.read(x._node, index)
    assert x.is_pending
    np.testing.assert_array_equal(peek, x.asnumpy()[index])


def test_the_sample_of_a_pending_row_that_is_broadcast_along_an_axis_of_one() -> None:
    x = dp.arange(9.0)[None, :] + dp.ones((1, 1))
    index = (slice(1, None), slice(2, 5))
    assert _sample.read(x._node, index).shape == (0, 3)


def test_a_pending_array_does_not_change_by_being_shown() -> None:
    x = dp.arange(1000.0)
    y = x + 1
    y._repr_html_()
    x += 5
    np.testing.assert_array_equal(y.asnumpy(), np.arange(1000.0) + 1)


def test_a_rich_display_shows_whether_the_queue_is_busy() -> None:
    x = dp.zeros(4)
    dp.synchronize()
    assert "computed" in shown(x).text
    dp.call_kernel(run_for_a_while, dp.Range(1), x, 100_000_000)
    text = shown(x).text
    assert "submitted: its queue is still working" in text
    assert "[2., 0., 0., 0.]" in text  # it waits for the values that it shows
    assert "computed" in shown(x).text


@dp.kernel
def run_for_a_while(item, x, steps):
    for _ in range(steps):
        x[0] = x[0] * 0.5 + 1


def test_a_broadcast_view_shows_its_strides() -> None:
    assert "strides (0,)" in shown(dp.broadcast_to(dp.asarray(1.0), (1000,))).text


# -- pictures -------------------------------------------------------------------------------------


def test_a_vector_has_a_line_that_shows_on_light_and_dark_pages() -> None:
    path = line(shown(dp.sin(dp.linspace(0, 6, 1000))))
    assert all(contrast(path["stroke"], page) >= 3 for page in PAGES)
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path["d"])]
    assert len(heights) == 250
    # The sine reaches its peak at a quarter, and falls below its start after a half.
    assert int(np.argmin(heights)) == pytest.approx(250 * (np.pi / 2) / 6, abs=3)
    assert int(np.argmax(heights)) == pytest.approx(250 * (3 * np.pi / 2) / 6, abs=3)


def test_a_line_has_gaps_where_values_are_not_finite() -> None:
    values = np.ones(30)
    values[[4, 5, 20]] = np.nan, np.inf, -np.inf
    path = line(shown(dp.asarray(values)))["d"]
    assert path.count("M") == 3
    assert "nan" not in path
    assert "inf" not in path


def test_a_matrix_has_a_heat_map_without_color_for_nan() -> None:
    values = np.add.outer(np.arange(10.0), np.arange(20.0))
    values[2, 3] = np.nan
    colors = pixels(shown(dp.asarray(values)))
    assert colors.shape == (10, 20, 4)
    assert colors[2, 3, 3] == 0
    lightness = colors[..., :3] @ [0.3, 0.59, 0.11]
    assert lightness[0, 0] < lightness[5, 10] < lightness[9, 19]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_image_shows_as_it_is(dtype: str) -> None:
    image = np.zeros((16, 24, 3), np.uint8)
    image[:8, :, 0], image[8:, :12, 1] = 255, 51
    x = dp.asarray(image) if dtype == "uint8" else dp.asarray(image.astype(dtype) / 255)
    np.testing.assert_array_equal(pixels(shown(x)), image)


def test_a_matrix_without_a_finite_value_has_no_picture() -> None:
    assert "img" not in shown(dp.full((8, 8), dp.nan)).names()


# -- devices, memory, kernels ---------------------------------------------------------------------


def test_a_device_shows_its_hardware_and_queue(queue: Any) -> None:
    device = dp.Device(queue)
    text = shown(device).text
    for fact in (device.name, device.driver_version, *str(device).rsplit(", ", 1)):
        assert fact in text
    assert "device, shared, host" in text


def test_devices_are_a_list_and_show_as_a_table() -> None:
    devices = dp.devices()
    assert isinstance(devices, list)
    card = shown(devices)
    assert "table" in card.names()
    assert all(str(device) in card.text for device in devices)


def test_memory_statistics_show_the_pools() -> None:
    x = dp.empty(3 << 20, dtype="uint8")
    stats = dp.memory.stats(x.device)
    text = shown(stats).text
    assert f"{x.device.filter_string}, device" in text
    assert str(stats.pools[0].hits) in text
    assert dp.memory.format_bytes(stats.in_use) in text


@dp.kernel
def shift(item, x, amount):
    i = item.get_id(0)
    x[i] = x[i] + amount  # <b>no markup</b>


@dp.device_func
def squared(value):
    return value * value


def test_a_kernel_shows_its_source_and_what_it_is_compiled_for() -> None:
    fresh = dp.kernel(shift.py_func)
    card = shown(fresh)
    assert "shift(item, x, amount)" in card.text
    assert "not compiled yet" in card.text
    assert "<b>no markup</b>" in card.text
    assert "b" not in card.names()
    dp.call_kernel(fresh, dp.Range(4), dp.zeros(4, dtype="float32"), 1.0)
    assert "float32" in shown(fresh).text


def test_device_functions_show() -> None:
    text = shown(squared).text
    assert "squared(value)" in text
    assert "device function" in text
    assert "test_notebook.py" in text


def test_an_explanation_shows_its_graph_and_a_row_for_each_step() -> None:
    x = dp.asarray(np.linspace(0, 1, 300_000, dtype="float32"))
    plan = dp.explain(dp.sqrt(x) * 2 + dp.sum(x))
    card = shown(plan)
    computed = sum(operation.kernel is not None for operation in plan.operations)
    steps = f"pending: {computed} operations in {len(plan.kernels)} step"
    for fact in ("(300000,) float32", steps, *plan.queue.split(", "), plan.source):
        assert fact in card.text
    for step in plan.kernels:
        assert step.reason in card.text
        assert step.stored_because in card.text
    assert picture(card, "svg+xml").decode() == plan.svg()
    assert "nothing is pending" in shown(dp.explain(x)).text


def test_the_graph_has_a_box_for_each_operation_with_lines_from_above_and_none_overlaps() -> None:
    x = dp.linspace(0, 1, 300_000, dtype="float32")
    y = dp.sqrt(x) * 2 + x
    plan = dp.explain(dp.where(y > 1, dp.sin(y) - x, dp.cos(y) + dp.exp(dp.cos(x) * y)) / x)
    graph = ElementTree.fromstring(plan.svg())
    width, height = (int(graph.attrib[name]) for name in ("width", "height"))
    boxes = []
    for found in graph.findall("{*}rect"):
        corner = np.array([int(found.attrib[name]) for name in ("x", "y")])
        boxes.append((corner, corner + [int(found.attrib[name]) for name in ("width", "height")]))
        assert (corner >= 0).all()
        assert (boxes[-1][1] <= (width, height)).all()
        assert contrast(found.attrib["fill"], "#ffffff") >= 4.5  # the text is white
    assert len(boxes) == len(plan.operations)
    for number, (start, end) in enumerate(boxes):
        for other_start, other_end in boxes[:number]:
            assert (end <= other_start).any() or (other_end <= start).any()
    ways = [found.attrib["d"] for found in graph.findall("{*}path")]
    places = [[float(number) for number in re.findall(r"-?[\d.]+", way)] for way in ways]
    ends = {(place[-2], place[-1]) for place in places}
    names = {operation.name for operation in plan.operations}
    assert len(places) >= sum(len({*each.operands} & names) for each in plan.operations)
    for operation, (start, end) in zip(plan.operations, boxes, strict=True):
        top = ((start[0] + end[0]) / 2, start[1])
        assert any(np.allclose(top, way, atol=1) for way in ends) == (operation.kernel is not None)
    colors = {found.attrib["stroke"] for found in graph.findall("{*}path")}
    assert all(contrast(color, page) >= 3 for color in colors for page in PAGES)


# -- errors ---------------------------------------------------------------------------------------


@pytest.fixture
def two_places() -> tuple[dp.ndarray, dp.ndarray]:
    import dpctl

    device = dp.Device("cpu")
    extra = dpctl.SyclQueue(device.sycl_device)
    return dp.ones(3, device=device), dp.ones(3, sycl_queue=extra)


def test_a_placement_error_shows_each_argument_and_which_to_move(two_places: Any) -> None:
    x, y = two_places
    with pytest.raises(dp.ExecutionPlacementError) as caught:
        dp.where(x > 0, x, y)
    card = shown(caught.value)
    rows = card.text.split("condition")[1]
    assert "same device, different queues" in card.text
    assert rows.count("stays") == 2
    assert rows.count("to_device") == 1
    for _, device, queue_name in caught.value.operands:
        assert device in card.text
        assert queue_name in card.text


def test_names_in_errors_are_no_markup() -> None:
    error = dp.ExecutionPlacementError(
        "f<i>: no", function="f<i>", operands=(("<script>", "a", "b"), ("y", "c", "d")), remedy=""
    )
    card = shown(error)
    assert "<script>" in card.text
    assert not card.names() & {"script", "i"}


# -- rules for all rich displays ------------------------------------------------------------------


def test_rich_displays_have_no_script_no_outside_reference_and_no_fixed_text_color() -> None:
    values = (
        dp.arange(100.0), dp.ones((20, 20)) * 2, dp.Device("cpu"), dp.devices(), dp.memory.stats(),
        shift, squared, dp.explain(dp.ones(9) + 1),
    )  # fmt: skip
    for value in values:
        card = shown(value)
        assert not card.names() & {"script", "style", "link", "iframe", "svg"}
        for _, attrs in card.elements:
            assert "href" not in attrs
            assert (attrs.get("src") or "data:").startswith("data:")
            assert not [name for name in attrs if name.startswith("on")]
            style = attrs.get("style") or ""
            assert set(re.findall(r"(?<![\w-])color:([^;]+)", style)) <= {"inherit"}


def test_importing_dparray_loads_nothing_of_notebooks() -> None:
    script = "import dparray, sys; print({'PIL', 'IPython', 'matplotlib', 'tqdm'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "set()\n", run.stderr


# -- magics ---------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.extension_manager.load_extension("dparray")
    shell.user_ns["dp"] = dp
    yield shell
    shell.extension_manager.unload_extension("dparray")


def test_a_statement_is_evaluated_and_timed_and_compared_with_numpy(shell: Any) -> None:
    x = dp.arange(300_000, dtype="float32")
    shell.user_ns["x"] = x
    timing = shell.run_line_magic("dp_time", "-n -r 4 dp.sqrt(x * 2)")
    assert len(timing.seconds) == len(timing.numpy_seconds) == 4
    assert 0 < min(timing.seconds) <= timing.median <= max(timing.seconds)
    assert timing.launches == 1
    assert timing.speedup == np.median(timing.numpy_seconds) / timing.median
    assert str(x.device) in repr(timing)
    assert "in NumPy" in repr(timing)


def test_assignments_of_a_timed_statement_are_evaluated_and_stay_local() -> None:
    x = dp.ones(300_000)
    namespace = {"x": x, "y": 1}
    timing = time_statement("y = x + 1\nz = [y * 2]", namespace, repeats=2)
    assert timing.launches >= 1
    assert namespace == {"x": x, "y": 1}


def test_timing_waits_for_the_device() -> None:
    x = dp.full(300_000, 0.5)
    short = time_statement("dp.exp(x)", {"dp": dp, "x": x}, repeats=3)
    long = time_statement("[dp.exp(x + n) for n in range(30)]", {"dp": dp, "x": x}, repeats=3)
    assert min(long.seconds) > 2 * min(short.seconds)


def test_numpy_gets_copies_of_the_arrays() -> None:
    x = dp.zeros(4)
    time_statement("x += 1", {"x": x}, repeats=3, beside_numpy=True)
    # Two warm-up runs and one more before three are measured; NumPy's are not counted.
    assert x.tolist() == [6.0] * 4


def test_only_arrays_of_the_statement_are_copied_for_numpy(events: list[Any]) -> None:
    other = dp.broadcast_to(dp.asarray(np.arange(50_000)), (50_000, 50_000))  # 20 GB, if copied
    events.clear()
    time_statement("x * 2", {"x": dp.ones(4), "other": other}, repeats=1, beside_numpy=True)
    assert sum(values["nbytes"] for event, values in events if event == "copy") < 1000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dp_time", "STATEMENT"),
        ("dp_time -q x", "-q"),
        ("dp_time -r 0 x", "at least one"),
        ("dp_device nosuch", "nosuch"),
        ("dp_memory everything", "release"),
        ("dp_explain", "EXPRESSION"),
        ("dp_explain 3", "must be an array"),
        ("dp_profile", "STATEMENT"),
    ],
)
def test_a_magic_called_wrongly_shows_its_usage(shell: Any, line: str, said: str) -> None:
    from IPython.core.error import UsageError

    name, _, rest = line.partition(" ")
    with pytest.raises(UsageError, match=re.escape(said)):
        shell.run_line_magic(name, rest)


def test_the_default_device_is_shown_and_set(shell: Any, capsys: Any) -> None:
    assert shell.run_line_magic("dp_device", "") == dp.devices()
    previous = dp.default_device()
    part = dp.Device("cpu").create_sub_devices(partition=1)[0]
    shell.user_ns["part"] = part
    try:
        shell.run_line_magic("dp_device", "part")
        assert dp.default_device() == part
        assert str(part) in capsys.readouterr().out
        shell.run_line_magic("dp_device", "cpu")
        assert dp.default_device() == dp.Device("cpu")
    finally:
        dp.set_default_device(previous)


def test_memory_is_shown_and_released(shell: Any, capsys: Any) -> None:
    x = dp.empty(5_000_000)
    del x
    assert shell.run_line_magic("dp_memory", "").cached >= 40_000_000
    assert shell.run_line_magic("dp_memory", "release").cached < 40_000_000
    assert "given back" in capsys.readouterr().out


@pytest.mark.usefixtures("tests_options")
def test_a_profiled_cell_is_computed_and_keeps_what_it_assigns(shell: Any) -> None:
    shell.run_cell("import dparray as dp; x = dp.ones(300_000); dp.eval(x)")
    found = shell.run_cell("%%dp_profile\ny = dp.sin(x) * 2\nz = y + 1").result
    assert type(found).__name__ == "Profile"
    work = [each for each in found.events if each.kind in ("kernel", "library")]
    assert work
    assert {each.line for each in found.events} <= {"cell:1", "cell:2"}
    assert not shell.user_ns["z"].is_pending
    assert "cell:1" in shown(found).text
    (line,) = [
        each.line for each in shell.run_cell("%dp_profile float(x.sum())").result.events
        if each.kind == "copy"
    ]  # fmt: skip
    assert line == "cell:1"


def test_explain_shows_the_last_line_and_keeps_assignments_of_the_cell(shell: Any) -> None:
    told = shell.run_cell_magic("dp_explain", "", "y = dp.ones(200_000) + 1\ndp.sin(y) * 3")
    assert "sin" in str(told)
    assert shell.user_ns["y"].is_pending


def completed(shell: Any, typed: str) -> list[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(typed, len(typed))]


@pytest.mark.parametrize(
    "typed", ["%dp_device op", "dp.zeros(3, device='op", 'dp.Device("op', "x.to_device('op"]
)
def test_device_names_are_completed(shell: Any, typed: str) -> None:
    wanted = [name for name in device_names() if name.startswith("op")]
    assert wanted
    assert completed(shell, typed) == wanted


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("@dp.kernel(", ["debug=", "fastmath=", "inline_threshold=", "range="]),
        ("@dp.kernel(de", ["debug="]),
        ("@kernel(range=lambda x: dp.Range.like(x), in", ["inline_threshold="]),
        ("add = dp.kernel(debug=True, r", ["range="]),
        ("@dp.device_func(", ["debug=", "fastmath=", "inline_threshold="]),
        ("with dp.config.override(la", ["lazy="]),
        ("dp.zeros(3, usm_type='s", ["shared"]),
        ("%dp_memory re", ["release", "reset_peak"]),
        ("%dp_time --", ["--numpy", "--repeats"]),
        ("%dp_time -n --r", ["--repeats"]),
    ],
)
def test_options_are_completed(shell: Any, typed: str, wanted: list[str]) -> None:
    assert completed(shell, typed) == wanted


@pytest.mark.parametrize("typed", ["dp.call_kernel(de", "dp.kernel(f)(de", "my_kernel(de"])
def test_options_of_kernels_are_completed_in_no_other_call(shell: Any, typed: str) -> None:
    assert "debug=" not in completed(shell, typed)


def test_names_elsewhere_are_not_completed_to_devices(shell: Any) -> None:
    assert not set(completed(shell, "print('op")) & set(device_names())


def test_device_names_name_devices() -> None:
    assert all(dp.Device(name).device_type for name in device_names())


def test_unloading_takes_the_magics_away(shell: Any) -> None:
    shell.extension_manager.unload_extension("dparray")
    assert shell.find_line_magic("dp_time") is None
    shell.extension_manager.load_extension("dparray")
    assert shell.find_line_magic("dp_time") is not None


@pytest.mark.slow
def test_a_notebook_shows_the_table_of_a_placement_error_under_its_traceback() -> None:
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "import dparray as dp\n%load_ext dparray\n"
        "a, b = dp.Device('cpu').create_sub_devices(partition=1)[:2]",
        "dp.ones(3, device=a) + dp.ones(3, device=b)",
        "dp.ones(2)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(
        book, timeout=120, startup_timeout=300, kernel_name="python3", allow_errors=True
    ).execute()
    error, table = book.cells[1].outputs
    assert error.ename == "ExecutionPlacementError"
    assert "x2 = x2.to_device(x1.device)" in table.data["text/html"]
    (card,) = book.cells[2].outputs
    assert "(2,) float64" in Text(card.data["text/html"]).text
    assert card.data["text/plain"].startswith("array([1., 1.]")


# -- long work ------------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_PIECE", 20_000)
    monkeypatch.setattr(pinned, "BUFFER", 20_000)


@pytest.mark.parametrize("shape", [(20_000,), (1, 20_000), (3, 7, 2000), (2, 3, 4)])
@pytest.mark.parametrize("host_reads_it", [True, False], ids=["readable", "unreadable"])
def test_a_large_copy_tells_of_its_progress_and_copies_all(
    shape: tuple[int, ...],
    host_reads_it: bool,
    small_pieces: None,
    events: list[Any],
    pretend: Any,
) -> None:
    if not host_reads_it:  # as with the memory of a GPU
        pretend(shares_memory=False)
    values = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    x = dp.asarray(values)
    np.testing.assert_array_equal(x.asnumpy(), values)
    np.testing.assert_array_equal(x.mT.asnumpy() if x.ndim > 1 else x[::-1].asnumpy()[::-1],
                                  values.swapaxes(-1, -2) if x.ndim > 1 else values)  # fmt: skip
    done = [values["done"] for event, values in events if event == "progress"]
    if values.nbytes > 20_000:
        assert done.count(values.nbytes) == 3
        assert len(done) > 3
    else:
        assert done == []


@pytest.mark.usefixtures("tests_options")
def test_an_interrupted_copy_leaves_no_array_and_the_next_one_works(small_pieces: None) -> None:
    def interrupt(event: str, **values: Any) -> None:
        if event == "progress" and values["done"] > 60_000:
            raise KeyboardInterrupt

    values = np.arange(20_000.0)
    x = dp.asarray(values)
    unsubscribe = _hooks.subscribe(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            x.asnumpy()
        with pytest.raises(KeyboardInterrupt):
            dp.asarray(values)
    finally:
        unsubscribe()
    np.testing.assert_array_equal(x.asnumpy(), values)


def test_bars_show_for_long_work_only_and_go_away(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    progress = _progress.Progress()
    try:
        _hooks.emit("progress", task="copy to the host", done=1 << 20, total=4 << 20)
        _hooks.emit("compile", kernel=None, seconds=0.5, origin="compiled")
        shown = capsys.readouterr().out
        assert "copy to the host" in shown
        assert "/4.00M" in shown
        assert "kernels compiled" in shown
        progress.close()
        # blanks overwrite the bars
        assert capsys.readouterr().out.replace("\x1b[A", "").strip() == ""
        monkeypatch.setattr(_progress, "PATIENCE", 1e9)
        _hooks.emit("progress", task="copy to the host", done=1, total=2)
        _hooks.emit("compile", kernel=None, seconds=0.5, origin="compiled")
        _hooks.emit("progress", task="copy to the host", done=2, total=2)
        assert capsys.readouterr().out.strip() == ""
    finally:
        progress.stop()
    _hooks.emit("progress", task="copy to the host", done=1, total=2)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (64, 3)])
def test_a_png_holds_the_pixels(tmp_path: Path, size: tuple[int, int], channels: int) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (*size, channels)).astype(np.uint8)
    path = tmp_path / "picture.png"
    path.write_bytes(png(pixels))
    with Image.open(path) as picture:
        np.testing.assert_array_equal(np.array(picture), pixels)
