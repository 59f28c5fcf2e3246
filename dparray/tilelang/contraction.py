"""Checks of a contraction, and its conversion to one typed operation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from dparray.tilelang.affine import Affine, affine_of
from dparray.tilelang.elementwise import integer, integer_or_kind, shape_of
from dparray.tilelang.tile_syntax import Call, Contraction, Expression, Index, Name, parts
from dparray.tilelang.uniqueness import is_single_valued
from dparray.tilelang.valid_domain import Domain, Form, Space, domain_of
from dparray.tilelang.values import (
    BOOL,
    Builder,
    DType,
    Group,
    Literal,
    Tensor,
    Unknown,
    Value,
    shown,
)

#: The attribute with which maxima and minima are NaN if a value is NaN, as in NumPy.
PROPAGATE_NAN = "propagate_nan"

#: The maximum number of elements along an axis.
_LARGEST = 2**63 - 1


class Contracted(NamedTuple):
    """A contraction that is ready to be computed.

    Attributes:
        text: the statement, for :func:`dparray.explain`.
        space: its index expressions; ``names`` are the names of its variables.
        domain: its loops; ``None`` if no element has a point.
        compared: the dtype that ``==`` compares in.
        has_default: the last operand is copied to elements without a point.
        propagates_nan: a maximum or minimum with a NaN among its values is NaN.
    """

    text: str
    names: tuple[str, ...]
    space: Space
    domain: Domain | None
    aggregation: str
    combination: str
    compared: DType
    dtype: DType
    has_default: bool
    propagates_nan: bool = False


class Scope(NamedTuple):
    """The names that a statement may use."""

    builder: Builder
    values: dict[str, Value]

    def value(self, name: Name) -> Value:
        """Return the value of a name.

        Raises:
            TileNameError: the name is not defined yet.
        """
        if name.name in self.values:
            return self.values[name.name]
        known = ", ".join(self.values) or "none"
        raise self.builder.name_error(
            name.position,
            f"{name.name} is not defined here",
            f"define it on a line before, or among the inputs; the names so far are {known}",
        )

    def integer(self, name: Name) -> int | None:
        """Return the integer value of a name in an index expression; ``None`` if unknown."""
        kind = integer_or_kind(self.value(name))
        if not isinstance(kind, str):
            return kind
        raise self.builder.type_error(
            name.position,
            f"{name.name} is {kind}, in an index expression",
            "index expressions hold index variables, integers and sizes; to index by the values "
            "of a tensor use gather",
        )


def contract(scope: Scope, statement: Contraction, evaluate: _Evaluate) -> Tensor:
    """Check a contraction, and emit it.

    Args:
        scope: the names that it may use.
        statement: the contraction.
        evaluate: returns the value of an expression of sizes.
    """
    return _Contraction(scope, statement, evaluate).emitted()


class _Evaluate:
    def __call__(self, expression: Expression) -> Value:
        raise NotImplementedError


class _Contraction:
    def __init__(self, scope: Scope, statement: Contraction, evaluate: _Evaluate) -> None:
        self.scope = scope
        self.builder = scope.builder
        self.statement = statement
        self.evaluate = evaluate
        self.position = statement.name.position

    def emitted(self) -> Tensor:
        statement = self.statement
        sizes = self.sizes()
        operands = [self.operand(each.name, len(each.indices)) for each in statement.operands]
        names = self.variables()
        output = [self.affine(each) for each in statement.indices]
        read = [[self.affine(each) for each in one.indices] for one in statement.operands]
        limits = [
            (self.affine(each.value), self.size(each.bound, "the bound of a constraint"))
            for each in statement.constraints
        ]
        forms = [*output, *(form for one in read for form in one), *(form for form, _ in limits)]
        self.check_bounded(names, forms)
        dtype, compared = self.dtypes(operands)
        default = self.default(sizes, dtype)
        shapes = [shape_of(each) for each in operands]
        known = [shape is not None and None not in shape for shape in shapes]
        known += [None not in (form.constant, *form.coefficients.values()) for form in forms]
        known += [bound is not None for _, bound in limits]
        if dtype is None or compared is None or not all(known) or None in sizes:
            return Tensor(sizes, dtype)
        space = Space(
            len(names),
            tuple(
                (_form(form, names), size or 0) for form, size in zip(output, sizes, strict=True)
            ),
            tuple(
                tuple(
                    (_form(form, names), size or 0)
                    for form, size in zip(one, shape or (), strict=True)
                )
                for one, shape in zip(read, shapes, strict=True)
            ),
            tuple((_form(form, names), bound or 0) for form, bound in limits),
        )
        domain = self.domain(space)
        parameters = Contracted(
            self.text(),
            names,
            space,
            domain,
            statement.aggregation,
            statement.combination,
            compared,
            dtype,
            default is not None,
            any(each.name == PROPAGATE_NAN for each in statement.attributes),
        )
        return self.builder.emit(
            "contract",
            [*operands, *([] if default is None else [default])],
            sizes,
            dtype,
            parameters,
        )

    def text(self) -> str:
        source = self.builder.source
        end = source.find(";", self.position)
        return " ".join(source[self.position : end].split())

    def sizes(self) -> tuple[int | None, ...]:
        indices, sizes = self.statement.indices, self.statement.sizes
        name = self.statement.name.name
        if sizes is None and indices:
            raise self.builder.shape_error(
                self.position,
                f"the sizes of {name} are missing",
                f"give one for each index: {name}[{', '.join('i' * len(indices))}: "
                f"{', '.join('N' * len(indices))}]",
            )
        sizes = sizes or ()
        if len(sizes) != len(indices):
            raise self.builder.shape_error(
                self.position,
                f"{name} has {len(indices)} indices and {len(sizes)} sizes",
                "give one size for each index",
            )
        return tuple(self.size(each, "a size") for each in sizes)

    def size(self, expression: Expression, what: str) -> int | None:
        value = self.evaluate(expression)
        call = Call(f"the contraction of {self.statement.name.name}", (), expression.position)
        size = integer(self.builder, value, call, what)
        if size is not None and size < 0:
            raise self.builder.shape_error(
                expression.position,
                f"{what} is {size}",
                "sizes and bounds are 0 or more; was a subtraction the wrong way round?",
            )
        if size is not None and size > _LARGEST:
            raise self.builder.shape_error(
                expression.position,
                f"{what} is {size}, which has more than 64 bits",
                f"sizes and bounds are at most {_LARGEST}",
            )
        return size

    def operand(self, name: Name, count: int) -> Tensor | Literal:
        value = self.scope.value(name)
        if isinstance(value, Unknown):
            return Tensor(None, None)
        if isinstance(value, Group):
            raise self.builder.type_error(
                name.position,
                f"{name.name} is a tuple",
                "take a member of it first: A = element(T, 0);",
            )
        given = self.builder.operand(value, name.position)
        shape = shape_of(given)
        if shape is not None and len(shape) != count:
            raise self.builder.shape_error(
                name.position,
                f"{name.name} has rank {len(shape)}, and {count} indices here",
                "give one index expression for each axis",
            )
        return given

    def variables(self) -> tuple[str, ...]:
        """Return the index variables, in the order in which operands use them."""
        statement = self.statement
        read = [each for one in statement.operands for each in one.indices]
        names = list(dict.fromkeys(each.name for each in _indices(*read, *statement.indices)))
        for constraint in statement.constraints:
            for each in _indices(constraint.value):
                if each.name not in names:
                    raise self.builder.index_error(
                        each.position,
                        f"the index variable {each.name!r} occurs in constraints only",
                        "use it in an index of the output or of an operand, or remove it",
                    )
        return tuple(names)

    def affine(self, expression: Expression) -> Affine:
        return affine_of(self.builder, expression, self.scope.integer)

    def check_bounded(self, names: tuple[str, ...], forms: list[Affine]) -> None:
        """Raise if an index variable is unbounded.

        All inequalities have two sides, so their rank determines it.
        """
        if any(None in form.coefficients.values() for form in forms):
            return
        space = Space(len(names), (), (tuple((_form(form, names), 1) for form in forms),), ())
        if not space.is_bounded:
            raise self.builder.index_error(
                self.position,
                f"the index variables {', '.join(names)} are not all bounded",
                "each one needs a range: let it index an axis alone, or add a constraint i < N",
            )

    def dtypes(self, operands: list[Tensor | Literal]) -> tuple[DType | None, DType | None]:
        """Return the dtype of the result, and the dtype in which ``==`` compares."""
        given = [each.dtype for each in operands]
        position = self.statement.operands[0].name.position
        compared = self.builder.common(given[:2], position)
        if self.statement.combination == "==":
            return BOOL, compared
        return self.builder.common(given, position), compared

    def default(
        self, sizes: tuple[int | None, ...], dtype: DType | None
    ) -> Tensor | Literal | None:
        name = self.statement.default
        if name is None:
            return None
        value = self.scope.value(name)
        if isinstance(value, Unknown):
            return Tensor(None, None)
        if isinstance(value, Group):
            raise self.builder.type_error(
                name.position, f"the default {name.name} is a tuple", "use a tensor"
            )
        given = self.builder.operand(value, name.position)
        shape = shape_of(given)
        if shape is not None and (
            len(shape) != len(sizes)
            or any(None not in (a, b) and a != b for a, b in zip(shape, sizes, strict=True))
        ):
            raise self.builder.shape_error(
                name.position,
                f"the default {name.name} has shape {shown(shape)}, the output {shown(sizes)}",
                "a default has exactly the output's shape",
            )
        if given.dtype is not None and dtype is not None and given.dtype != dtype:
            raise self.builder.type_error(
                name.position,
                f"the default {name.name} is {given.dtype}, the output {dtype}",
                "a default has exactly the output's dtype; convert it before with as_float, "
                "as_int or as_uint",
            )
        return given

    def domain(self, space: Space) -> Domain | None:
        if any(size == 0 for _, size in space.output):
            return None
        if any(size == 0 for one in space.operands for _, size in one):
            return None
        found = domain_of(space)
        if found is None:
            raise self.builder.index_error(
                self.position,
                "no index is valid: no element of the output would be written",
                "check offsets and constraints; if the expressions contain fractions, all must "
                "be integers together (name a truncated half first: P = (K - 1) / 2;)",
            )
        if found.largest > _LARGEST:
            raise self.builder.index_error(
                self.position,
                "the index arithmetic needs more than 64 bits",
                "use smaller factors and offsets in index expressions and constraints",
            )
        if self.statement.aggregation == "=" and not is_single_valued(found):
            raise self.builder.index_error(
                self.position,
                f"'=' would give one element of {self.statement.name.name} several values",
                "use + * > or < to combine them, or use all index variables in the output",
            )
        return found


def _indices(*expressions: Expression) -> Iterator[Index]:
    for expression in expressions:
        for each in parts(expression):
            if isinstance(each, Index):
                yield each


def _form(form: Affine, names: tuple[str, ...]) -> Form:
    zero = Fraction(0)
    return Form(
        tuple(form.coefficients.get(name, zero) or zero for name in names), form.constant or zero
    )
