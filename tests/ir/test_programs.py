"""Programs: their text, the rules of their form, and the passes over them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from dparray._ir import passes
from dparray._ir.instructions import OPS, Op, Place, constant, walk
from dparray._ir.text import printed, shown
from dparray._ir.types import BOOL, F16, F32, F64, I32, I64, U8, U32, U64, Type
from dparray._ir.verify import InvalidProgram, verify
from tests.ir.programs import LOCAL_FLOATS, PRIVATE_FLOATS, Builder, array, row_sums, single, whole

# --- text -----------------------------------------------------------------------------------------

ROW_SUMS = """\
kernel row_sums(%n: i64, %x: *f32.global, %out: *f32.global)
  %3: i64 = index[global_id, 0]
  loop0 %4: i64 = 0, %5: f32 = 0.0
    %6: bool = lt %4, %n
    if1 %6
      %7: i64 = mul %3, %n
      %8: i64 = add %7, %4
      %9: *f32.global = offset %x, %8
      %10: f32 = load %9
      %11: f32 = add %5, %10
      %12: i64 = add %4, 1
      repeat loop0 %12, %11
    else
      leave loop0 %5
  -> %13: f32
  %14: bool = gt %13, 0.0
  if2 %14
    %15: *f32.global = offset %out, %3
    store %15, %13
    leave if2
  else
    leave if2
  return
"""


def test_a_program_is_readable() -> None:
    assert printed(row_sums()) == ROW_SUMS


def test_equal_programs_have_equal_texts() -> None:
    assert printed(row_sums()) == printed(row_sums())


def test_constants_have_their_type_where_nothing_else_shows_it() -> None:
    build = Builder()
    out = build.parameter("out", array(U8))
    build.op("store", None, out, constant(3, U8))
    build.op("convert", I64, constant(7, U64))
    assert "store %out, u8(3)" in printed(build.end())
    assert "convert u64(7)" in printed(build.function)


def test_constants_are_wrapped_and_rounded() -> None:
    assert constant(-1, U8).attribute == 255
    assert constant(2**63, I64).attribute == -(2**63)
    assert constant(2049, F16).attribute == 2048.0


def test_an_op_alone_is_shown_with_its_marks() -> None:
    build = Builder()
    op = build.op("mod", I64, whole(5), whole(3))
    op.marks = frozenset({"nonnegative"})
    assert shown(op) == "%0: i64 = mod 5, 3 !nonnegative"
    assert str(Place("file.py", 7, "f")) == "f:7"


# --- the verifier ---------------------------------------------------------------------------------


def test_valid_programs_pass() -> None:
    verify(row_sums())


def valid() -> Builder:
    """Use every kind of op once, in its least form."""
    build = Builder()
    x, n = build.parameter("x", array()), build.parameter("n", I64)
    i = build.index()
    for name in ("add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor"):
        build.op(name, I64, i, n)
    for name in ("shl", "shr", "pow"):
        build.op(name, I64, i, n)
    build.op("div", F32, single(1), single(2))
    flags = [build.op(name, BOOL, i, n) for name in ("lt", "le", "gt", "ge", "eq", "ne")]
    build.op("neg", I64, i)
    build.op("invert", I64, i)
    build.op("not", BOOL, flags[0])
    build.op("select", x.type, flags[0], x, x)
    build.op("bitcast", I64, build.op("convert", F64, i))
    build.op("low_bits", I32, i)
    build.op("math", F32, single(1), single(2), attribute="hypot")
    vector = build.op("pack", Type("f", 32, 2), single(1), single(2))
    build.op("extract", F32, vector, attribute=1)
    build.op("extract", F32, vector, i)
    for kind in (LOCAL_FLOATS, PRIVATE_FLOATS):
        build.op("allocate", kind, attribute=4)
    place = build.place(x, i)
    build.op("address", U64, place)
    build.op("store", None, place, build.op("load", Type("f", 32, 2), place, attribute=4))
    build.op("atomic", F32, place, single(1), attribute=("fetch_add", "device", ["relaxed"]))
    build.op("barrier", None, attribute=("work_group", "work_group"))
    build.op("fence", None, attribute=("device", "acq_rel"))
    build.op("group", F32, single(1), attribute=("work_group", "reduce", "add"))
    build.op("group", F32, single(1), constant(0, U32), attribute=("sub_group", "shuffle", ""))
    build.op("print", None, i, attribute="%d\n")
    build.op("check", None, flags[0], i, attribute="a fault")
    loop = Op("loop")
    build.inside(loop, lambda: build.op("repeat", None, attribute=loop))
    build.op("new", array(), n)
    build.op("launch", None, n, n, x, attribute=(1, 64, 0))
    procedure = Builder("procedure")
    procedure.parameter("m", I64)
    build.function.procedures = [procedure.end()]
    build.op("call", None, n, attribute=0)
    parts = Op("parallel", operands=[n, n])
    parts.carried = [Op("carried", I64) for _ in range(3)]
    build.inside(parts, lambda: build.leave(parts))
    build.body.append(parts)
    build.branch(flags[1], build.leave, lambda _: build.op("stop", None, attribute=1))
    block = Op("block")
    build.inside(block, lambda: build.leave(block))
    build.body += [block]
    build.branch(flags[0], build.leave, lambda control: build.body.append(loop))
    return build


def test_every_kind_of_op_has_a_valid_form() -> None:
    build = valid()
    function = build.end()
    verify(function)
    used = {op.name for op in walk(function.body)} | {"parameter", "constant"}
    assert used | {"result", "carried"} == set(OPS)
    assert all(rule.summary.endswith(".") for rule in OPS.values())


def test_a_call_fits_its_procedure() -> None:
    build = valid()
    build.op("call", None, single(1), attribute=0)
    with pytest.raises(InvalidProgram, match=r"its arguments are \['f32'\]; expected \['i64'\]"):
        verify(build.end())


def _mixed(build: Builder) -> None:
    build.op("add", I64, whole(1), constant(1, I32))


def _float_bits(build: Builder) -> None:
    build.op("and", F32, single(1), single(1))


def _comparison(build: Builder) -> None:
    build.op("lt", I64, whole(1), whole(1))


def _lanes(build: Builder) -> None:
    build.op("convert", Type("f", 32, 4), whole(1))


def _unknown(build: Builder) -> None:
    build.op("root", F32, single(1))


def _function(build: Builder) -> None:
    build.op("math", F32, single(1), attribute="hypot")


def _later(build: Builder) -> None:
    first, second = Op("add", I64, [whole(1), whole(1)]), Op("neg", I64)
    second.operands = [first]
    build.body += [second, first]


def _inside_a_branch(build: Builder) -> None:
    inner: list[Op] = []

    def then(control: Op) -> None:
        inner.append(build.index())
        build.leave(control)

    build.branch(constant(True, BOOL), then, build.leave)
    build.op("neg", I64, inner[0])


def _no_jump(build: Builder) -> None:
    build.branch(constant(True, BOOL), lambda control: build.index(), build.leave)


def _after_a_jump(build: Builder) -> None:
    build.op("return", None)


def _outside_of_its_target(build: Builder) -> None:
    control = build.branch(constant(True, BOOL), build.leave, build.leave)
    block = Op("block")
    build.inside(block, lambda: build.leave(control))
    build.body.append(block)


def _wrong_results(build: Builder) -> None:
    control = build.branch(constant(True, BOOL), build.leave, build.leave)
    build.result(control, I64)


def _wrong_first_values(build: Builder) -> None:
    loop = Op("loop", operands=[whole(0)])
    build.inside(loop, lambda: build.leave(loop))
    build.body.append(loop)


def _store(build: Builder) -> None:
    build.op("store", None, build.function.parameters[0], whole(1))


def _atomic(build: Builder) -> None:
    pointer = build.function.parameters[0]
    build.op("atomic", F32, pointer, single(1), attribute=("fetch_xor", "device", ["relaxed"]))


def _global_allocation(build: Builder) -> None:
    build.op("allocate", array(), attribute=4)


def _twice(build: Builder) -> None:
    build.body.append(build.index())


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (_mixed, "i32 is not i64"),
        (_float_bits, "not of 'biu'"),
        (_comparison, "i64 must be B"),
        (_lanes, "number of lanes"),
        (_unknown, "no op of a body"),
        (_function, "must name a function"),
        (_later, "not computed on every path"),
        (_inside_a_branch, "not computed on every path"),
        (_no_jump, "is the last"),
        (_after_a_jump, "must be the last"),
        (_outside_of_its_target, "control flow around it"),
        (_wrong_results, r"its results are \[\]; expected \['i64'\]"),
        (_wrong_first_values, r"its first values are \['i64'\]; expected \[\]"),
        (_store, "accesses i64 in memory of f32"),
        (_atomic, "fetch_xor does not take f32"),
        (_global_allocation, "private or local memory"),
        (_twice, "in one body, once"),
    ],
)
def test_a_broken_rule_is_named(break_it: Callable[[Builder], None], words: str) -> None:
    build = Builder("broken")
    build.parameter("x", array())
    break_it(build)
    with pytest.raises(InvalidProgram, match=words) as error:
        verify(build.end(), "a pass")
    assert "after a pass" in str(error.value)
    assert "kernel broken(%x: *f32.global)" in str(error.value)


# --- passes ---------------------------------------------------------------------------------------


def names(build: Builder) -> list[str]:
    return [op.name for op in walk(build.function.body)]


def test_unused_ops_are_removed() -> None:
    build = Builder()
    out = build.parameter("out", array())
    i = build.index()
    build.op("mul", I64, i, whole(2))
    build.store(out, i, single(1))
    function = build.end()
    passes.remove_unused(function)
    verify(function)
    assert names(build) == ["index", "offset", "store", "return"]


def test_values_that_only_a_loop_needs_for_itself_are_not_carried() -> None:
    build = Builder()
    out = build.parameter("out", array())

    def body(at: Op, carried: Sequence[Op]) -> list[Op]:
        used, unused = carried
        return [
            build.op("add", F32, used, single(1)),
            build.op("mul", F32, unused, single(2)),
        ]

    loop = build.counted(whole(0), whole(4), body, single(0), single(1))
    build.store(out, whole(0), loop.results[0])
    function = build.end()
    passes.remove_unused(function)
    verify(function)
    assert len(loop.carried) == 2  # the counter and the sum
    assert len(loop.results) == 1
    assert "mul" not in names(build)


def test_needed_programs_stay_as_they_are() -> None:
    function = row_sums()
    before = printed(function)
    passes.remove_unused(function)
    passes.simplify(function)
    assert printed(function).count("\n") == before.count("\n")


def test_a_short_branch_becomes_a_select() -> None:
    build = Builder()
    out = build.parameter("out", array())
    i = build.index()

    def then(control: Op) -> None:
        build.leave(control, build.op("neg", I64, i))

    control = build.branch(build.op("lt", BOOL, i, whole(3)), then, lambda op: build.leave(op, i))
    result = build.result(control, I64)
    ops = passes.selected(control)
    assert ops is not None
    build.body[-1:] = ops
    build.store(out, result, single(1))
    verify(build.end())
    assert names(build)[:4] == ["index", "lt", "neg", "select"]


@pytest.mark.parametrize("kind", ["store", "load", "two ways"])
def test_other_branches_stay(kind: str) -> None:
    build = Builder()
    out = build.parameter("out", array())
    i = build.index()
    outer = Op("block")

    def then(control: Op) -> None:
        if kind == "store":
            build.store(out, i, single(1))
        value = build.load(out, i) if kind == "load" else single(2)
        build.leave(outer if kind == "two ways" else control, *[value][: kind != "two ways"])

    def body() -> None:
        control = build.branch(
            build.op("lt", BOOL, i, whole(3)), then, lambda op: build.leave(op, single(0))
        )
        build.result(control, F32)
        assert passes.selected(control) is None
        build.leave(outer)

    build.inside(outer, body)
    build.body.append(outer)
    verify(build.end())


def test_blocks_with_one_way_out_are_dissolved() -> None:
    build = Builder()
    out = build.parameter("out", array())
    outer, inner = Op("block"), Op("block")
    value = build.result(inner, I64)
    place = build.result(outer, I64)

    def inside() -> None:
        build.leave(inner, build.index())

    def outside() -> None:
        build.inside(inner, inside)
        build.body.append(inner)
        build.leave(outer, build.op("add", I64, value, whole(1)))

    build.inside(outer, outside)
    build.body.append(outer)
    build.store(out, place, single(1))
    build.branch(build.op("lt", BOOL, place, whole(3)), build.leave, build.leave)
    function = build.end()
    verify(function)
    passes.simplify(function)
    verify(function)
    assert names(build) == ["index", "add", "offset", "store", "lt", "return"]


def test_a_block_with_an_early_way_out_stays() -> None:
    build = Builder()
    out = build.parameter("out", array())
    i = build.index()
    block = Op("block")

    def body() -> None:
        build.branch(build.op("lt", BOOL, i, whole(3)), lambda _: build.leave(block), build.leave)
        build.store(out, i, single(1))
        build.leave(block)

    build.inside(block, body)
    build.body.append(block)
    function = build.end()
    passes.simplify(function)
    verify(function)
    assert "block" in names(build)


def test_programs_are_verified_in_tests() -> None:
    build = Builder()
    build.op("neg", F32, whole(1))
    build.end()
    with pytest.raises(InvalidProgram, match="after the front end"):
        passes.finish(build.function, "the front end")


@pytest.mark.process
def test_users_do_not_load_the_verifier() -> None:
    script = (
        "import sys; from dparray._ir.instructions import Function; from dparray._ir import passes;"
        "passes.finish(Function('f'), 'a stage'); print('dparray._ir.verify' in sys.modules)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "DPARRAY_VERIFY_IR"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False"]
