"""Facts about a program, for back ends, launches and derivatives.

Each fact is computed from the program alone, so a pass that changes a program invalidates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dparray._ir.instructions import CONTROL, Function, Op, walk
from dparray._ir.types import Pointer, Type

# --- memory ---------------------------------------------------------------------------------------


class Access(NamedTuple):
    """The accesses of a program to the memory of an array argument."""

    reads: bool = False
    writes: bool = False
    is_atomic: bool = False


def accesses(function: Function) -> dict[str, Access]:
    """Return how a program accesses each array argument, by the name of the parameter.

    An array of which only ``reads`` is set has the alias class "only read": this kernel changes it
    through no parameter of that name.
    """
    roots = _Roots(function)
    found = {
        parameter.attribute.argument: Access()
        for parameter in function.parameters
        if isinstance(parameter.type, Pointer)
    }
    for op in walk(function.body):
        if op.name not in ("load", "store", "atomic"):
            continue
        is_read = op.name == "load" or (op.name == "atomic" and op.attribute[0] != "store")
        is_write = op.name == "store" or (op.name == "atomic" and op.attribute[0] != "load")
        for root in roots.of(op.operands[0]):
            if root.name == "parameter":
                before = found[root.attribute.argument]
                found[root.attribute.argument] = Access(
                    before.reads or is_read,
                    before.writes or is_write,
                    before.is_atomic or op.name == "atomic",
                )
    return found


#: Operations that pass an index on; a comparison with one says nothing about its size.
_PASSING = ("add", "sub", "mul", "neg", "min", "max", "select", "convert")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def index_arithmetic(function: Function) -> set[int]:
    """Return the sums and products, by identity, that are used as indices alone.

    No array is so large that they overflow. (Measured: where LLVM does not know that, a loop over
    every n-th element takes twice the time.)
    """
    sources = joined_values(function)
    leads_to: dict[int, list[int]] = {}
    is_index: set[int] = set()
    is_other: set[int] = set()
    for op in walk(function.body):
        if op.name in _COMPARISONS or op.name in ("loop", "leave", "repeat", "check"):
            continue
        if op.name == "offset":
            is_index.add(id(op.operands[1]))
            continue
        for operand in op.operands[1 if op.name == "select" else 0 :]:
            if op.name in _PASSING:
                leads_to.setdefault(id(operand), []).append(id(op))
            else:
                is_other.add(id(operand))
    for value, given in sources.items():
        for each in given:
            leads_to.setdefault(id(each), []).append(value)
    is_other, is_index = (_leading(leads_to, ends) for ends in (is_other, is_index))
    return is_index - is_other


def _leading(leads_to: dict[int, list[int]], ends: set[int]) -> set[int]:
    """Return the values that lead to one of the ends, and the ends."""
    sources: dict[int, list[int]] = {}
    for value, results in leads_to.items():
        for result in results:
            sources.setdefault(result, []).append(value)
    found, pending = set(ends), list(ends)
    while pending:
        for value in sources.get(pending.pop(), ()):
            if value not in found:
                found.add(value)
                pending.append(value)
    return found


class _Roots:
    """Finds the parameters and allocations to which a pointer may lead."""

    def __init__(self, function: Function) -> None:
        self.sources = joined_values(function)

    def of(self, pointer: Op) -> list[Op]:
        found: dict[int, Op] = {}
        seen: set[int] = set()
        pending = [pointer]
        while pending:
            op = pending.pop()
            if id(op) in seen:
                continue
            seen.add(id(op))
            if op.name in ("parameter", "allocate"):
                found[id(op)] = op
            elif op.name == "offset":
                pending.append(op.operands[0])
            elif op.name == "select":
                pending += op.operands[1:]
            else:
                pending += self.sources.get(id(op), ())
        return list(found.values())


def joined_values(function: Function) -> dict[int, list[Op]]:
    """Return the values that each result and each carried value may have, by its identity."""
    sources: dict[int, list[Op]] = {}
    for op in walk(function.body):
        if op.name == "loop":
            pairs: Any = zip(op.carried, op.operands, strict=True)
        elif op.name == "leave":
            pairs = zip(op.attribute.results, op.operands, strict=True)
        elif op.name == "repeat":
            pairs = zip(op.attribute.carried, op.operands, strict=True)
        else:
            continue
        for value, source in pairs:
            sources.setdefault(id(value), []).append(source)
    return sources


# --- devices --------------------------------------------------------------------------------------


_STORAGE = ("load", "store", "convert", "bitcast", "pack", "extract")


def aspects(function: Function) -> frozenset[str]:
    """Return the aspects that a device must have: ``"fp64"``, ``"fp16"`` and ``"atomic64"``.

    A float64 that is only printed needs none: a device without float64 prints its float32. Neither
    does a float16 that is only loaded, stored and converted.
    """
    printed_only = _printed_only(function)
    found = set()
    for op in (*function.parameters, *walk(function.body)):
        kinds = [op.type, *(operand.type for operand in op.operands)]
        if op.name == "atomic" and op.operands[0].type.element.bits == 64:  # type: ignore[union-attr]
            found.add("atomic64")
        for number in kinds:
            if not isinstance(number, Type) or not number.is_float or id(op) in printed_only:
                continue
            if number.bits == 64:
                found.add("fp64")
            if number.bits == 16 and op.name not in _STORAGE:
                found.add("fp16")
    return frozenset(found)


def _printed_only(function: Function) -> set[int]:
    """Return the prints, and the conversions whose values are printed and not used otherwise."""
    uses: dict[int, list[Op]] = {}
    for op in walk(function.body):
        for operand in op.operands:
            uses.setdefault(id(operand), []).append(op)
    return {
        id(op)
        for op in walk(function.body)
        if op.name == "print"
        or (
            op.name == "convert"
            and op.type.kind == "f"  # type: ignore[union-attr]
            and id(op) in uses
            and all(user.name == "print" for user in uses[id(op)])
        )
    }


# --- uniform values -------------------------------------------------------------------------------

VARYING, IN_GROUP, IN_LAUNCH = range(3)
_SYNCHRONIZES = ("barrier", "fence", "atomic", "group")
_SIZES = ("global_size", "local_size", "group_count")


def uniformity(function: Function) -> dict[int, int]:
    """Return for each value, by identity, which work-items agree on it.

    ``IN_LAUNCH``: all work-items that compute it at the same time, in the same iteration of the
    loops around it, get the same value. ``IN_GROUP``: those of a work-group do. ``VARYING``: they
    may differ. Constants are not in the dictionary.
    """
    return Uniformity(function).levels


class Uniformity:
    """Lowers levels until all values depend on values of at least their own level.

    Attributes:
        levels: of all values so far, by identity.
        controls: of the conditions around the op that is judged, inner ones last.
    """

    def __init__(self, function: Function) -> None:
        self.levels: dict[int, int] = {}
        self.roots = _Roots(function)
        self.written = {name for name, access in accesses(function).items() if access.writes}
        self.synchronizes = any(op.name in _SYNCHRONIZES for op in walk(function.body))
        self.repeats: dict[int, int] = {}
        for op in walk(function.body):
            if op.name == "repeat":
                self.repeats[id(op.attribute)] = self.repeats.get(id(op.attribute), 0) + 1
        for parameter in function.parameters:
            self.levels[id(parameter)] = IN_LAUNCH
        self.has_changed = True
        while self.has_changed:
            self.has_changed = False
            self.body(function.body, [])

    def level(self, op: Op) -> int:
        return IN_LAUNCH if op.name == "constant" else self.levels.setdefault(id(op), IN_LAUNCH)

    def lower(self, op: Op, level: int) -> None:
        if level < self.level(op):
            self.levels[id(op)] = level
            self.has_changed = True

    def body(self, body: Sequence[Op], around: list[tuple[Op, int]]) -> None:
        for op in body:
            if op.name == "loop":
                for carried, first in zip(op.carried, op.operands, strict=True):
                    self.lower(carried, self.level(first))
            if op.name in CONTROL:
                condition = self.level(op.operands[0]) if op.name == "if" else IN_LAUNCH
                for inner in op.bodies:
                    self.body(inner, [*around, (op, condition)])
            elif op.name in ("leave", "repeat"):
                self.jump(op, around)
            elif op.type is not None:
                self.lower(op, self.computed(op))

    def jump(self, op: Op, around: list[tuple[Op, int]]) -> None:
        """Lower what a jump gives: to its operands, and to the conditions of taking it."""
        target = op.attribute
        start = next(at for at, (control, _) in enumerate(around) if control is target)
        control = min(level for _, level in around[start:])
        if op.name == "leave":
            # Work-items that leave a loop in different iterations, or a construct by different
            # jumps, bring values of different times. An inner loop may be left by this jump.
            inside = [each for each, _ in around[start:] if each.name == "loop"]
            control = min([control, *(self.exits(loop) for loop in inside)])
            for result, operand in zip(target.results, op.operands, strict=True):
                self.lower(result, min(control, self.level(operand)))
            return
        if self.repeats[id(target)] == 1:
            control = IN_LAUNCH  # All work-items that are still in the loop take this jump.
        for carried, operand in zip(target.carried, op.operands, strict=True):
            self.lower(carried, min(control, self.level(operand)))

    def exits(self, loop: Op) -> int:
        """Return whether work-items leave a loop together."""
        level = IN_LAUNCH

        def visit(body: Sequence[Op], condition: int) -> None:
            nonlocal level
            for op in body:
                if op.name in ("leave", "return") and not _is_inside(op.attribute, loop):
                    level = min(level, condition)
                own = self.level(op.operands[0]) if op.name == "if" else IN_LAUNCH
                for inner in op.bodies:
                    visit(inner, min(condition, own))

        visit(loop.bodies[0], IN_LAUNCH)
        return level

    def joint_loops(self, function: Function) -> set[int]:
        """Return the loops, by identity, whose iterations all work-items run together."""
        found: set[int] = set()

        def visit(body: Sequence[Op], is_joint: bool) -> None:
            for op in body:
                own = is_joint and (op.name != "if" or self.level(op.operands[0]) == IN_LAUNCH)
                if op.name == "loop":
                    own = own and self.exits(op) == IN_LAUNCH
                    found.update([id(op)] if own else ())
                for inner in op.bodies:
                    visit(inner, own)

        visit(function.body, True)
        return found

    def computed(self, op: Op) -> int:
        level = min((self.level(operand) for operand in op.operands), default=IN_LAUNCH)
        if op.name == "index":
            name = op.attribute[0]
            return IN_LAUNCH if name in _SIZES else IN_GROUP if name == "group_id" else VARYING
        if op.name in ("allocate", "atomic"):
            return VARYING
        if op.name == "group":
            scope, function, _ = op.attribute
            is_same = scope == "work_group" and function in ("reduce", "broadcast")
            return IN_GROUP if is_same else VARYING
        if op.name == "load":
            return min(level, self.loaded(op))
        return level

    def loaded(self, op: Op) -> int:
        """Return the level of the contents of one address.

        Another work-item that writes what this one reads, without synchronization, is a race. So
        an array that the program does not write has the same elements for all.
        """
        for root in self.roots.of(op.operands[0]):
            if root.name != "parameter" or root.attribute.argument in self.written:
                return VARYING
        return IN_GROUP if self.synchronizes else IN_LAUNCH


def _is_inside(target: Op | None, loop: Op) -> bool:
    """Return whether control flow is inside of a loop."""
    return target is not None and any(op is target for op in walk(loop.bodies[0]))


# --- loops and indices ----------------------------------------------------------------------------


class Counter(NamedTuple):
    """A loop that counts: ``carried`` goes from ``first`` by ``step`` while ``order`` holds."""

    carried: Op
    first: Op
    step: Op
    order: str
    stop: Op


def counter(loop: Op) -> Counter | None:
    """Return how a loop counts, or ``None`` if it does not.

    The loop begins with the comparison of the counter, and an ``if`` whose second body leaves the
    loop; all iterations end with one ``repeat``, whose counter is the sum of the old one and a
    value from outside of the loop. The loop may have more exits.
    """
    body = loop.bodies[0]
    inside = {id(op) for op in walk(body)}
    inside |= {id(each) for op in walk(body) for each in (*op.results, *op.carried)}
    inside |= {id(each) for each in loop.carried}
    repeats = [op for op in walk(body) if op.name == "repeat" and op.attribute is loop]
    branch = next((op for op in body if op.name == "if"), None)
    if len(repeats) != 1 or branch is None or not _leaves(branch.bodies[1], loop):
        return None
    test = branch.operands[0]
    if test.name not in ("lt", "le", "gt", "ge") or not any(op is test for op in body):
        return None
    count, stop = test.operands
    if id(stop) in inside:
        return None
    for number, carried in enumerate(loop.carried):
        after = repeats[0].operands[number]
        if carried is not count or after.name != "add" or after.operands[0] is not carried:
            continue
        step = after.operands[1]
        if id(step) not in inside:
            return Counter(carried, loop.operands[number], step, test.name, stop)
    return None


def _leaves(body: Sequence[Op], loop: Op) -> bool:
    return len(body) == 1 and body[0].name == "leave" and body[0].attribute is loop


#: A product of values, by their identities in ascending order; the empty one stands for 1.
Product = tuple[int, ...]


class Affine(NamedTuple):
    """An index that is a sum of products of values.

    Attributes:
        terms: the integer factor of each product. A product has at most one factor that varies, an
            id or a counter; all others are equal in all work-items and iterations.
        values: the factors, by their identities.
    """

    terms: dict[Product, int]
    values: dict[int, Op]

    @property
    def variables(self) -> list[Op]:
        """The ids and counters that the index depends on."""
        return [op for op in self.values.values() if op.name in ("index", "carried")]

    def coefficient(self, variable: Op) -> dict[Product, int]:
        """Return the factor of a variable, as a sum of products."""
        return {
            tuple(each for each in product if each != id(variable)): factor
            for product, factor in self.terms.items()
            if id(variable) in product
        }


def affine(index: Op, counters: Sequence[Counter] = ()) -> Affine | None:
    """Return an index as a sum of products, or ``None`` if it is none.

    Args:
        index: an operand of ``offset``.
        counters: of the loops around it.
    """
    variables = {id(each.carried) for each in counters}
    return _affine(
        index, lambda op: op.name in ("index", "parameter") or id(op) in variables, False
    )


def _affine(op: Op, is_factor: Callable[[Op], bool], is_natural: bool) -> Affine | None:
    """Return an integer as a sum of products.

    Args:
        op: the integer.
        is_factor: whether a value is a factor of products.
        is_natural: whether indices that may count from the end are taken for ones that do not.
    """
    if op.name == "constant":
        return Affine({(): op.attribute} if op.attribute else {}, {})
    if op.name == "convert" and op.type in _WIDE and op.operands[0].type in _WIDE:
        return _affine(op.operands[0], is_factor, is_natural)
    if is_natural and op.name == "select" and _counts_from_end(op):
        return _affine(op.operands[2], is_factor, is_natural)
    if op.name not in ("add", "sub", "mul", "neg") or op.type not in _WIDE:
        return Affine({(id(op),): 1}, {id(op): op}) if is_factor(op) else None
    parts = [_affine(operand, is_factor, is_natural) for operand in op.operands]
    if any(part is None for part in parts):
        return None
    first, *rest = parts
    assert first is not None
    if op.name == "neg":
        return _scaled(first, -1)
    (second,) = rest
    assert second is not None
    if op.name == "mul":
        return _product(first, second)
    return _sum(first, second if op.name == "add" else _scaled(second, -1))


def _counts_from_end(op: Op) -> bool:
    """Return whether a choice adds a length to an index if that is negative."""
    test, from_end, index = op.operands
    is_test = (
        test.name == "lt" and test.operands[0] is index and test.operands[1].name == "constant"
    )
    return is_test and from_end.name == "add" and from_end.operands[0] is index


_WIDE = (Type("i", 64), Type("u", 64))


def _scaled(value: Affine, factor: int) -> Affine:
    return Affine({product: factor * each for product, each in value.terms.items()}, value.values)


def _sum(first: Affine, second: Affine) -> Affine:
    terms = dict(first.terms)
    for product, factor in second.terms.items():
        terms[product] = terms.get(product, 0) + factor
    return Affine(
        {product: each for product, each in terms.items() if each}, first.values | second.values
    )


def _product(first: Affine, second: Affine) -> Affine | None:
    values = first.values | second.values
    terms: dict[Product, int] = {}
    for a, factor in first.terms.items():
        for b, other in second.terms.items():
            product = tuple(sorted((*a, *b)))
            if sum(values[each].name in ("index", "carried") for each in product) > 1:
                return None
            terms[product] = terms.get(product, 0) + factor * other
    return Affine(terms, values)


class IndexedAccess(NamedTuple):
    """A load, a store or an atomic access of an array, with its index.

    Attributes:
        op: the access.
        array: the ``parameter`` or ``allocate`` op of its memory; ``None`` if it may be one of
            several.
        position: the index in elements, or in bytes if ``in_bytes``; ``None`` if it is not affine.
        in_bytes: whether the position counts bytes.
        counters: of the loops around the access, outer ones first.
    """

    op: Op
    array: Op | None
    position: Affine | None
    in_bytes: bool
    counters: tuple[Counter, ...]


def indexed_accesses(function: Function) -> Iterator[IndexedAccess]:
    """Yield the accesses of arrays in the order of the program."""
    roots = _Roots(function)
    for op, loops in _accesses_in_loops(function.body, ()):
        counters = tuple(each for each in map(counter, loops) if each)
        pointer = op.operands[0]
        arrays = roots.of(pointer)
        index: Affine | None = Affine({}, {})
        if pointer.name == "offset":
            is_first = pointer.operands[0].name in ("parameter", "allocate")
            index = affine(pointer.operands[1], counters) if is_first else None
        elif pointer.name not in ("parameter", "allocate"):
            index = None
        array = arrays[0] if len(arrays) == 1 else None
        yield IndexedAccess(op, array, index, pointer.attribute == "bytes", counters)


def _accesses_in_loops(
    body: Sequence[Op], loops: tuple[Op, ...]
) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    """Yield the accesses of arrays with the loops around them, outer ones first."""
    for op in body:
        if op.name in ("load", "store", "atomic"):
            yield op, loops
        for inner in op.bodies:
            yield from _accesses_in_loops(inner, (*loops, op) if op.name == "loop" else loops)


# --- the direction of vectors ---------------------------------------------------------------------


def follows_rows(function: Function) -> bool:
    """Return whether the innermost loops go along rows, with a row for each work-item.

    Vectors of iterations are then better than vectors of work-items, which would gather elements
    of as many rows. (Measured: ``v[i, j] = a * u[i, j]`` for the rows of 512 x 512 elements takes a
    thirtieth of the time on the host, and a seventh on Intel's CPU driver.)
    """
    if any(op.name in ("barrier", "group") for op in walk(function.body)):
        return False
    depth = _depth(function.body)
    ids = [op.attribute[1] for op in walk(function.body) if _is_id(op)]
    ids += [op.attribute.dimension for op in function.parameters if op.attribute.part == "extent"]
    if not depth or not ids:
        return False
    levels = uniformity(function)
    return (
        sum(
            _vote(access, loops[-1], levels, max(ids))
            for access, loops in _accesses_in_loops(function.body, ())
            if len(loops) == depth
        )
        > 0
    )


def _vote(access: Op, loop: Op, levels: Mapping[int, int], last: int) -> int:
    """Return 1 if an access is for vectors of iterations, -1 if it is for those of work-items.

    Args:
        access: the access.
        loop: the innermost loop around it.
        levels: of :func:`uniformity`.
        last: the dimension of neighboring work-items.
    """
    pointer, count = access.operands[0], counter(loop)
    if count is None or pointer.name != "offset":
        return 0
    changing = {id(each) for op in walk(loop.bodies[0]) for each in (op, *op.results)}
    changing |= {id(each) for each in loop.carried if each is not count.carried}
    index = _affine(pointer.operands[1], lambda op: id(op) not in changing, True)
    if index is None:
        return 0
    assert isinstance(pointer.type, Pointer)
    unit = max(pointer.type.element.bits // 8, 1) if pointer.attribute == "bytes" else 1

    def is_near(value: Op) -> bool:
        if levels.get(id(value), IN_LAUNCH) == IN_LAUNCH or value is count.carried:
            return True
        if not _is_id(value):
            return False
        return value.attribute[1] < last or _is_next(index.coefficient(value), unit)

    is_along = _is_next(index.coefficient(count.carried), unit, count.step)
    is_across = all(map(is_near, index.values.values()))
    is_counted = id(count.carried) in index.values
    return (is_along and not is_across) - (is_across and not is_along and is_counted)


def _depth(body: Sequence[Op]) -> int:
    """Return how deep loops are nested."""
    return max(
        ((op.name == "loop") + max(map(_depth, op.bodies)) for op in body if op.bodies), default=0
    )


def _is_id(op: Op) -> bool:
    return op.name == "index" and op.attribute[0] == "global_id"


def _is_next(factor: Mapping[Product, int], unit: int, step: Op | None = None) -> bool:
    """Return whether a factor of a variable makes neighbors of what follows each other."""
    length = 1 if step is None else step.attribute if step.name == "constant" else 0
    return list(factor) == [()] and abs(factor[()] * length) == unit


def only_read(function: Function) -> frozenset[str]:
    """Return the array arguments that a program reads and never writes."""
    return frozenset(
        name for name, access in accesses(function).items() if access.reads and not access.writes
    )
