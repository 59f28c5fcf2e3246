"""The text of generated kernels, compared byte by byte with the golden files in ``generated/``.

After an intended change, `python tests/codegen/test_generated_source.py` updates the files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dparray as dp
from dparray._codegen import elementwise as codegen
from dparray._codegen import values as values_module
from dparray._codegen.domain import Domain, Machine
from dparray._codegen.reduction import linearize_reduction
from dparray._compiler import compile as compiler
from dparray._compiler.abi import LOW_BITS
from dparray._compiler.back_ends.spirv import client
from dparray._evaluate import kernels
from dparray._evaluate.fusion import split
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import CONVERT, OPS, WHERE
from dparray._graph.reductions import REDUCTIONS, Reduce
from dparray._language.intrinsics import multiply_add_32
from dparray._layout import broadcast_shapes, contiguous_strides
from dparray.config import Tuning
from tests.compiler.module_rules import faults
from tests.support import TARGET, forced

MACHINE = Machine(2)
GPU = Machine(96, 128, 32, 512, 1 << 16, 8)
FOLDER = Path(__file__).parent / "generated"


def module_of(source: str) -> str:
    """Return the module of a recorded text, as LLVM IR."""
    return compiler.generated_module(source, TYPES[source])[1]


class FakeBlock(NamedTuple):
    """Memory that nobody accesses; ``None`` means that the elements are positions."""

    name: str
    memory: Any = "memory"


class FakeLayout(NamedTuple):
    block: FakeBlock
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


def layout(name: str, shape: tuple[int, ...], dtype: str = "f4", strides: Any = None) -> FakeLayout:
    kind = np.dtype(dtype)
    if strides is None:
        strides = contiguous_strides(shape, kind.itemsize)
    return FakeLayout(FakeBlock(name), 0, shape, strides, kind)


def leaf(*args: Any) -> Node:
    return Node.leaf(layout(*args), None, "device")


def node(name: str, *operands: Any, dtype: str = "f4", signature: str = "") -> Node:
    op = {"where": WHERE, "convert": CONVERT}.get(name) or OPS[name]
    parts = tuple(each if isinstance(each, Node) else Scalar(each) for each in operands)
    shape = broadcast_shapes(name, [each.shape for each in parts if isinstance(each, Node)])
    kinds = tuple(np.dtype(signature or dtype) for _ in parts)
    size = int(np.prod(shape))
    return Node(op, parts, (*kinds, np.dtype(dtype)), shape, size, None, "device")


TYPES: dict[str, tuple[str, ...]] = {}  # the type keys of a text's parameters


def recorded(structure: Any) -> str:
    """Return the text of a structure, and record its types in `TYPES`."""
    launch = SimpleNamespace(structure=structure)
    source = kernels.source_of(structure)
    TYPES[source] = kernels.types_of(launch)  # type: ignore[arg-type]
    return source


def elementwise(
    *values: Node, out: Any = None, is_gpu: bool = False, has_vectors: bool = False
) -> str:
    outputs = [
        (value, out or layout(f"out{place}", value.shape, value.dtype.str))
        for place, value in enumerate(values)
    ]
    order, shape = pending_order(values), outputs[0][1].shape
    program = codegen.linearize(order, outputs, shape, Tuning(), is_gpu, has_vectors=has_vectors)
    return recorded(program.structure)


def reduced(
    value: Node,
    axes: tuple[int, ...],
    name: str = "sum",
    dtype: str = "f4",
    keepdims: bool = False,
    result: str = "",
) -> Node:
    op = Reduce(REDUCTIONS[name], axes, keepdims)
    domain = Domain(value.shape, axes)
    shape = domain.row if keepdims else domain.output_shape
    scalars = [Scalar(float(np.prod(value.shape)))] * op.reduction.scalars
    signature = [np.dtype(dtype)] * (1 + len(scalars))
    kinds = (*signature, np.dtype(result or dtype))
    return Node(op, (value, *scalars), kinds, shape, int(np.prod(shape)), None, "device")


def reduction(*values: Node, machine: Machine = MACHINE) -> str:
    part = split(values, [], False, machine)
    assert not part.first
    assert not part.apart
    kernel = part.group
    assert kernel.domain is not None
    outputs = [
        (value, layout(f"out{place}", value.shape, value.dtype.str))
        for place, value in enumerate(values)
    ]
    program = linearize_reduction(
        kernel.order, outputs, kernel.domain, kernel.dropped, kernel.rows, machine
    )
    return recorded(program.structure)


def chain() -> str:
    a, b = leaf("a", (1000,)), leaf("b", (1000,))
    total = node("add", node("multiply", a, b), a)
    return elementwise(node("subtract", total, node("multiply", b, 2.0)))


def transposed_and_broadcast() -> str:
    a = leaf("a", (200, 300), "f4", (4, 800))
    return elementwise(node("add", a, leaf("row", (300,))))


def turned_into_rows_of_three() -> str:
    a = leaf("a", (20_000, 3), "f4", (4, 80_000))
    return elementwise(node("add", a, leaf("row", (3,))))


def turned_and_far_apart() -> str:
    a = leaf("a", (300, 100, 30), "f4", (120, 36_000, 4))
    return elementwise(node("sqrt", a))


def small_rows() -> str:
    return elementwise(node("add", leaf("a", (500, 3)), leaf("column", (500, 1))))


def jacobi(is_gpu: bool = False, has_vectors: bool = False) -> str:
    strides = (4 * 1000, 4)
    parts = [
        FakeLayout(FakeBlock("u"), offset, (998, 998), strides, np.dtype("f4"))
        for offset in (4, 4000, 4008, 8004)
    ]
    up, left, right, down = (Node.leaf(part, None, "device") for part in parts)
    total = node("add", node("add", up, down), node("add", left, right))
    out = layout("v", (998, 998), "f4", strides)
    value = node("multiply", total, 0.25)
    return elementwise(value, out=out, is_gpu=is_gpu, has_vectors=has_vectors)


def positions() -> str:
    rows = FakeLayout(FakeBlock("rows", None), 0, (200, 300), (8, 0), np.dtype("i8"))
    counted = Node.leaf(rows, None, "device")
    counted = node("convert", counted, dtype="f4", signature="i8")
    return elementwise(node("add", node("multiply", counted, leaf("a", (200, 300))), 0.5))


def sum_with_positions() -> str:
    line = FakeLayout(FakeBlock("line", None), 0, (5000,), (8,), np.dtype("i8"))
    counted = node("convert", Node.leaf(line, None, "device"), dtype="f4", signature="i8")
    return reduction(reduced(node("multiply", counted, leaf("a", (5000,))), (0,)))


def mixed_dtypes() -> str:
    a, mask = leaf("a", (100,), "i2"), leaf("mask", (100,), "b1")
    wide = node("convert", a, dtype="f8")
    chosen = Node(
        WHERE,
        (mask, wide, Scalar(1.5)),
        tuple(map(np.dtype, ("b1", "f8", "f8", "f8"))),
        (100,),
        100,
        None,
        "device",
    )
    return elementwise(chosen)


def two_outputs() -> str:
    a = leaf("a", (100,))
    root = node("sqrt", a)
    return elementwise(node("add", root, 1.0), node("less", root, 2.0, dtype="?", signature="f4"))


def sum_of_squares() -> str:
    a, b = leaf("a", (100_000,)), leaf("b", (100_000,))
    return reduction(reduced(node("square", node("subtract", a, b)), (0,)))


def column_maxima() -> str:
    return reduction(reduced(leaf("a", (1000, 500)), (0,), "max"))


def sums_of_three() -> str:
    return reduction(reduced(node("square", leaf("a", (1000, 3))), (1,)))


def any_over_middle_axis() -> str:
    return reduction(reduced(leaf("a", (40, 300, 5), "i4"), (1,), "any", "?"))


def softmax_of_rows() -> str:
    x = leaf("x", (3000, 1000))
    e = node("exp", node("subtract", x, reduced(x, (1,), "max", keepdims=True)))
    return reduction(node("divide", e, reduced(e, (1,), keepdims=True)))


def mean_and_variance() -> str:
    x = leaf("x", (1000, 500))
    return reduction(reduced(x, (0,), "mean"), reduced(x, (0,), "var"))


def place_of_the_largest() -> str:
    return reduction(reduced(leaf("x", (3000, 2000)), (1,), "argmax", result="i8"))


def places_of_the_largest_in_short_rows() -> str:
    return reduction(reduced(leaf("x", (3000, 100)), (1,), "argmax", result="i8"))


def row_norms() -> str:
    return reduction(node("sqrt", reduced(node("square", leaf("x", (9000, 3))), (1,))))


def sums_of_short_rows() -> str:
    value = reduced(leaf("a", (1 << 20, 3)), (0,))
    domain, rows = Domain((1 << 20, 3), (0,)), {id(value)}
    order = pending_order([value])
    program = linearize_reduction(order, [], domain, (), rows, MACHINE, leaves_accumulators=True)
    return recorded(program.structure)


def sum_on_a_gpu() -> str:
    return reduction(reduced(leaf("a", (1_000_000,)), (0,)), machine=GPU)


def row_sums_on_a_gpu() -> str:
    return reduction(reduced(leaf("a", (65_536, 1000)), (1,)), machine=GPU)


def mean_and_variance_on_a_gpu() -> str:
    x = leaf("x", (4096, 256))
    return reduction(reduced(x, (1,), "mean"), reduced(x, (1,), "var"), machine=GPU)


def column_sums_on_a_gpu() -> str:
    return reduction(reduced(leaf("a", (1024, 1024)), (0,)), machine=GPU)


def column_sums_of_rows_together() -> str:
    machine = GPU._replace(loads_vectors=True, bytes_in_flight=16)
    return reduction(reduced(leaf("a", (1024, 1024)), (0,)), machine=machine)


def softmax_of_rows_on_a_gpu(length: int = 1024, machine: Machine = GPU) -> str:
    x = leaf("x", (1024, length))
    e = node("exp", node("subtract", x, reduced(x, (1,), "max", keepdims=True)))
    value = node("divide", e, reduced(e, (1,), keepdims=True))
    return reduction(value, machine=machine)


NVIDIA = GPU._replace(group=1024, is_fixed=True, loads_vectors=True, bytes_in_flight=16)


def column_sums_by_vectors(dtype: str = "f4") -> str:
    return reduction(reduced(leaf("a", (4096, 8192), dtype), (0,), "sum", dtype), machine=NVIDIA)


def softmax_in_registers() -> str:
    return softmax_of_rows_on_a_gpu(100, NVIDIA)


def normalized_rows(length: int, machine: Machine) -> str:
    """Return a layer normalization."""
    x = leaf("x", (1024, length))
    mean, variance = (reduced(x, (1,), name, keepdims=True) for name in ("mean", "var"))
    scale = node("sqrt", node("add", variance, 1e-5))
    return reduction(node("divide", node("subtract", x, mean), scale), machine=machine)


def jacobi_on_a_gpu() -> str:
    return jacobi(is_gpu=True)


def jacobi_by_tiles() -> str:
    return jacobi(is_gpu=True, has_vectors=True)


def vectors_of_small_elements() -> str:
    a, b = leaf("a", (1 << 18,), "u1"), leaf("b", (1 << 18,), "f2")
    total = node("add", node("convert", a, dtype="f2", signature="u1"), b, dtype="f2")
    return elementwise(node("multiply", total, 3, dtype="f2"), has_vectors=True)


def vectors_of_positions() -> str:
    index = Node.leaf(
        FakeLayout(FakeBlock("i", None), 0, (1 << 18,), (8,), np.dtype("i8")), None, ""
    )
    total = node("multiply", leaf("a", (1 << 18,)), node("convert", index, signature="i8"))
    return elementwise(total, has_vectors=True)


CASES: list[Callable[[], str]] = [
    turned_and_far_apart,
    turned_into_rows_of_three,
    sums_of_short_rows,
    chain,
    transposed_and_broadcast,
    small_rows,
    jacobi,
    jacobi_on_a_gpu,
    jacobi_by_tiles,
    positions,
    sum_with_positions,
    mixed_dtypes,
    two_outputs,
    sum_of_squares,
    column_maxima,
    sums_of_three,
    any_over_middle_axis,
    softmax_of_rows,
    mean_and_variance,
    place_of_the_largest,
    places_of_the_largest_in_short_rows,
    row_norms,
    sum_on_a_gpu,
    row_sums_on_a_gpu,
    mean_and_variance_on_a_gpu,
    column_sums_on_a_gpu,
    column_sums_of_rows_together,
    softmax_of_rows_on_a_gpu,
    softmax_in_registers,
    column_sums_by_vectors,
    vectors_of_small_elements,
    vectors_of_positions,
]


def golden(case: Callable[[], str]) -> Path:
    # Not a Python file for tools, because the kernel's names belong to the kernel language.
    return FOLDER / f"{case.__name__}.txt"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_text_is_the_golden_file(case: Callable[[], str]) -> None:
    assert case() == golden(case).read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_text_is_one_python_function(case: Callable[[], str]) -> None:
    source = case()
    function = codegen.function_of(source)
    assert source.startswith(f"def {function.__name__}(item, ")


def test_there_is_no_golden_file_without_a_case() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {golden(case).name for case in CASES}


def test_values_and_sizes_are_not_in_the_text() -> None:
    def scaled(size: int, factor: float) -> str:
        return elementwise(node("multiply", leaf("a", (size,)), factor))

    assert scaled(1000, 2.0) == scaled(17, 3.5)


def test_a_kernel_is_never_named_like_a_function_it_calls() -> None:
    assert elementwise(node("abs", leaf("a", (9,)))).startswith("def fused_abs(")


def test_a_long_name_is_truncated_at_a_word() -> None:
    value = leaf("a", (9,))
    for _ in range(40):
        value = node("add", value, 1.0)
    name = codegen.function_of(elementwise(value)).__name__
    assert len(name) <= values_module.LONGEST_NAME + len("_etc")
    assert name.endswith("add_etc")


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 16, 31, 63])
def test_rows_of_any_length_are_taken_apart_rightly(columns: int, dtype: str) -> None:
    values = np.arange(5000 * columns).reshape(5000, columns).astype(dtype)
    x = dp.asarray(values)
    row, column = x[7], x[:, :1]
    with forced("fused"):
        np.testing.assert_array_equal((x + row).asnumpy(), values + values[7])
        np.testing.assert_array_equal((x * column).asnumpy(), values * values[:, :1])
        np.testing.assert_array_equal((x.T + x.T).asnumpy(), values.T + values.T)
        cube = x.reshape(10, 500, columns)[1:-1, ::-3]
        expected = values.reshape(10, 500, columns)[1:-1, ::-3]
        np.testing.assert_array_equal((cube + cube).asnumpy(), expected + expected)


@pytest.mark.parametrize("case", [chain, jacobi, small_rows, row_norms])
def test_the_driver_gets_the_end_of_the_work_items(case: Callable[[], str]) -> None:
    source = case()
    llvm, _ = client.optimised(module_of(source), TARGET)
    assert "icmp slt" in llvm or "icmp sge" in llvm
    assert "dparray.hidden" not in llvm


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_modules_have_nothing_that_a_driver_spoils(case: Callable[[], str]) -> None:
    source = case()
    _, spirv = client.optimised(module_of(source), TARGET)
    assert not faults(spirv)


def four_dimensions_on_a_gpu() -> str:
    strides = (4 * 33 * 34 * 36, 8 * 34 * 36, 4 * 36, 4)
    return elementwise(node("multiply", leaf("a", (32, 17, 33, 35), "f4", strides), 2), is_gpu=True)


@pytest.mark.parametrize("case", [jacobi_on_a_gpu, four_dimensions_on_a_gpu])
def test_indices_have_32_bits_on_a_gpu_where_they_fit(case: Callable[[], str]) -> None:
    source = case()
    llvm, _ = client.optimised(module_of(source), TARGET)
    assert "mul i32" in llvm
    assert "mul i64" not in llvm
    assert LOW_BITS not in llvm
    rows = leaf("a", (3, 5), "f4", (1 << 33, 4))
    text = elementwise(node("add", rows, leaf("b", (3, 5))), is_gpu=True)
    assert "multiply_add_32" not in text


def sums_over_the_outer_axes_on_a_gpu() -> str:
    return reduction(reduced(leaf("a", (64, 4096, 80)), (0, 2)), machine=GPU)


@pytest.mark.parametrize(
    "case",
    [
        four_dimensions_on_a_gpu,
        sums_over_the_outer_axes_on_a_gpu,
        sum_on_a_gpu,
        row_sums_on_a_gpu,
        mean_and_variance_on_a_gpu,
        column_sums_on_a_gpu,
        column_sums_of_rows_together,
        softmax_of_rows_on_a_gpu,
    ],
    ids=lambda case: case.__name__,
)
def test_indices_are_not_divided_in_64_bits_on_a_gpu(case: Callable[[], str]) -> None:
    """Intel's compiler makes such a division a loop over bits."""
    source = case()
    llvm, _ = client.optimised(module_of(source), TARGET)
    assert not re.findall(r"[us]div i64 \S+ %", llvm)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_no_variable_has_the_name_of_a_function(case: Callable[[], str]) -> None:
    assigned = {
        node.id
        for node in ast.walk(ast.parse(case()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    assert assigned
    assert not assigned & codegen.NAMESPACE.keys()


@pytest.mark.parametrize("stride", [3, -3, 0, (1 << 31) - 1])
def test_a_product_of_32_bits(stride: int) -> None:
    first, added = np.arange(5, dtype="u8") % 2, np.uint64(7)
    second = np.full(5, stride % 2**64, "u8")
    expected = np.asarray([int(each) * stride + 7 for each in first])
    out = dp.empty(5, dtype="u8")
    dp.call_kernel(_multiply_and_add, dp.Range(5), dp.asarray(first), dp.asarray(second), 7, out)
    bits = (expected % 2**32).astype("u4").view("i4").astype("i8").view("u8")
    np.testing.assert_array_equal(out.asnumpy(), bits)
    found = [multiply_add_32(a, b, added) for a, b in zip(first, second, strict=True)]
    np.testing.assert_array_equal(np.asarray(found, "u8"), bits)


@dp.kernel
def _multiply_and_add(item, first, second, added, out):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    out[i] = multiply_add_32(first[i], second[i], np.uint64(added))


@given(
    divisor=st.integers(1, (1 << 31) - 1),
    quotient=st.integers(0, 1 << 31),
    beside=st.integers(-2, 2),
)
def test_multiplying_with_a_reciprocal_is_dividing(
    divisor: int, quotient: int, beside: int
) -> None:
    index = min(max(quotient % ((1 << 31) // divisor + 1) * divisor + beside, 0), (1 << 31) - 1)
    factor, shift = codegen.reciprocal(divisor)
    assert index * factor < 1 << 64
    assert index * factor >> shift == index // divisor


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        golden(case).write_text(case())
