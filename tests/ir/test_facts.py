"""Facts about programs: memory, aspects, uniform values, loops, indices."""

from __future__ import annotations

from collections.abc import Sequence

from dparray._ir import facts
from dparray._ir.instructions import Op, constant
from dparray._ir.types import BOOL, F16, F32, F64, I64
from tests.ir.programs import Builder, array, row_sums, single, whole


def test_reads_and_writes_are_found_by_parameter() -> None:
    assert facts.accesses(row_sums()) == {
        "x": facts.Access(reads=True),
        "out": facts.Access(writes=True),
    }
    assert facts.only_read(row_sums()) == {"x"}


def test_a_pointer_that_may_be_two_arrays_accesses_both() -> None:
    build = Builder()
    x, y = build.parameter("x", array()), build.parameter("y", array())
    test = build.op("lt", BOOL, build.index(), whole(3))
    chosen = build.op("select", x.type, test, x, y)
    build.store(chosen, whole(0), single(1))
    build.op("atomic", F32, x, single(1), attribute=("fetch_add", "device", ["relaxed"]))
    found = facts.accesses(build.end())
    assert found == {"x": facts.Access(True, True, True), "y": facts.Access(writes=True)}
    assert facts.only_read(build.function) == frozenset()


def test_aspects() -> None:
    assert facts.aspects(row_sums()) == frozenset()
    build = Builder()
    wide = build.parameter("x", array(F64))
    build.load(wide, whole(0))
    build.op("atomic", F64, wide, constant(1, F64), attribute=("exchange", "device", ["relaxed"]))
    assert facts.aspects(build.end()) == {"fp64", "atomic64"}


def test_float16_in_memory_needs_no_aspect_but_its_arithmetic_does() -> None:
    build = Builder()
    half = build.parameter("x", array(F16))
    value = build.load(half, whole(0))
    build.store(half, whole(0), build.op("convert", F16, build.op("convert", F32, value)))
    assert facts.aspects(build.end()) == frozenset()
    build = Builder()
    build.op("add", F16, constant(1, F16), constant(1, F16))
    assert facts.aspects(build.end()) == {"fp16"}


def test_float64_that_is_only_printed_needs_no_aspect() -> None:
    build = Builder()
    build.op("print", None, build.op("convert", F64, single(1)), attribute="%g")
    assert facts.aspects(build.end()) == frozenset()
    build.body.insert(-1, Op("neg", F64, [build.body[0]]))
    assert facts.aspects(build.function) == {"fp64"}


def test_ids_vary_and_sizes_do_not() -> None:
    build = Builder()
    ops = {name: build.index(name) for name in ("global_id", "group_id", "global_size")}
    sums = {name: build.op("add", I64, op, whole(1)) for name, op in ops.items()}
    level = facts.uniformity(build.end())
    assert {name: level[id(op)] for name, op in sums.items()} == {
        "global_id": facts.VARYING,
        "group_id": facts.IN_GROUP,
        "global_size": facts.IN_LAUNCH,
    }


def test_elements_of_arrays_that_are_only_read_are_uniform() -> None:
    build = Builder()
    x, y = build.parameter("x", array()), build.parameter("y", array())
    same, own = build.load(x, whole(0)), build.load(x, build.index())
    written = build.load(y, whole(0))
    build.store(y, whole(0), same)
    level = facts.uniformity(build.end())
    assert level[id(same)] == facts.IN_LAUNCH
    assert level[id(own)] == level[id(written)] == facts.VARYING


def test_results_of_a_condition_that_varies_vary() -> None:
    for name, expected in (("global_id", facts.VARYING), ("global_size", facts.IN_LAUNCH)):
        build = Builder()
        control = build.branch(
            build.op("lt", BOOL, build.index(name), whole(3)),
            lambda op, build=build: build.leave(op, single(1)),
            lambda op, build=build: build.leave(op, single(2)),
        )
        result = build.result(control, F32)
        assert facts.uniformity(build.end())[id(result)] == expected


def test_a_loop_that_work_items_leave_at_different_times_has_varying_results() -> None:
    for name, expected in (("global_id", facts.VARYING), ("global_size", facts.IN_LAUNCH)):
        build = Builder()
        seen: list[Op] = []

        def body(at: Op, sums: Sequence[Op], build=build, seen=seen) -> list[Op]:
            seen.append(at)
            return [build.op("add", F32, sums[0], single(1))]

        loop = build.counted(whole(0), build.index(name), body, single(0))
        level = facts.uniformity(build.end())
        assert level[id(loop.results[0])] == expected
        # In one iteration, all work-items that are still in the loop have the same counter.
        assert level[id(seen[0])] == facts.IN_LAUNCH


def test_a_value_that_varies_in_a_later_iteration_varies() -> None:
    build = Builder()
    i = build.index()

    def body(at: Op, carried: Sequence[Op]) -> list[Op]:
        return [build.op("add", I64, carried[0], i)]

    loop = build.counted(whole(0), whole(3), body, whole(0))
    level = facts.uniformity(build.end())
    assert level[id(loop.carried[1])] == level[id(loop.results[0])] == facts.VARYING


def test_counters_are_found() -> None:
    function = row_sums()
    loop = next(op for op in function.body if op.name == "loop")
    found = facts.counter(loop)
    assert found is not None
    assert found.carried is loop.carried[0]
    assert (found.order, found.step.attribute) == ("lt", 1)
    assert found.stop is function.parameters[0]


def test_a_loop_whose_limit_changes_does_not_count() -> None:
    build = Builder()
    loop = build.counted(whole(0), whole(9), lambda at, sums: [sums[0]], whole(9))
    loop.bodies[0][0].operands[1] = loop.carried[1]
    assert facts.counter(loop) is None


def test_affine_indices_of_accesses() -> None:
    function = row_sums()
    read, write = facts.indexed_accesses(function)
    n, x, out = function.parameters
    assert (read.array, write.array) == (x, out)
    assert read.position is not None
    assert write.position is not None
    i, k = write.position.variables[0], read.counters[0].carried
    # x[i * n + k]
    assert read.position.coefficient(i) == {(id(n),): 1}
    assert read.position.coefficient(k) == {(): 1}
    assert write.position.coefficient(i) == {(): 1}
    assert write.counters == ()


def test_products_of_ids_and_narrow_sums_are_not_affine() -> None:
    build = Builder()
    i, j = build.index(), build.index(dimension=1)
    three_i = build.op("sub", I64, build.op("mul", I64, i, whole(4)), i)
    square = build.op("mul", I64, i, j)
    found = facts.affine(three_i)
    assert found is not None
    assert found.coefficient(i) == {(): 3}
    assert facts.affine(square) is None
    assert facts.affine(build.op("floordiv", I64, i, whole(2))) is None
