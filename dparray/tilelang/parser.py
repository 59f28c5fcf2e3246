"""Conversion of tokens to the syntax tree, by recursive descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dparray.exceptions import TileSyntaxError, TileTypeError
from dparray.tilelang.failure import failure
from dparray.tilelang.lexer import RESERVED, Token, tokens
from dparray.tilelang.tile_syntax import (
    Assignment,
    Attribute,
    Call,
    Constraint,
    Contraction,
    Expression,
    Index,
    Input,
    Name,
    Number,
    Program,
    Reference,
    Statement,
)

T = TypeVar("T")

# Binary operators by increasing precedence; those of a level in _UNCHAINED do not chain.
_LEVELS: tuple[tuple[str, ...], ...] = (
    *(("^",), ("|",), ("&",), ("==", "!="), (">", ">=", "<", "<=")),
    *(("<<", ">>"), ("+", "-"), ("*", "/")),
)
_UNCHAINED = (3, 4)
_AGGREGATIONS = ("+", "*", ">", "<", "=")
_NUMBERS = "a number has digits on both sides of its point: 1.0, 0.5"
#: Deeper nesting is rejected before Python's own stack overflows: by the parser, which needs
#: several calls per level, and by the passes over its tree.
_DEEPEST = 40
_MAX_HEIGHT = 240
_MAX_DIGITS = 309  # of the largest float64


def parse(source: str) -> Program:
    """Return the tree of a program.

    Raises:
        TileSyntaxError: the text is not a program.
        TileTypeError: a float in an index expression.
    """
    return _Parser(source).program()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.at = 0
        self.depth = 0
        self.heights: dict[int, int] = {}  # of each Call, by id; the tree keeps all of them

    # -- tokens ------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def is_next(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.take()
            return True
        return False

    def expect(self, kind: str, where: str, cure: str = "") -> Token:
        if self.token.kind != kind:
            wanted = {"ID": "a name with a capital", "IDX": "a small name"}.get(kind, f"{kind!r}")
            raise self.refused(f"{wanted} is missing {where}; there is {self.found()}", cure)
        return self.take()

    def separated(self, rule: Callable[[], T]) -> list[T]:
        """Return one or more parts between commas."""
        parts = [rule()]
        while self.accept(","):
            parts.append(rule())
        return parts

    def found(self) -> str:
        return "the end of the text" if self.token.kind == "end" else repr(self.token.text)

    def refused(self, what: str, cure: str, position: int | None = None) -> TileSyntaxError:
        position = self.token.position if position is None else position
        cure = cure or "see the grammar in the documentation of dparray.tilelang"
        return failure(TileSyntaxError, self.source, position, what, cure)

    def name(self, where: str, cure: str = "") -> Name:
        if self.token.kind in RESERVED:
            raise self.refused(
                f"{self.token.text!r} is a reserved word",
                f"take another name, or write #{self.token.text}",
            )
        if self.token.kind == "IDX" and not cure:
            cure = f"names of tensors and sizes begin with a capital, or write #{self.token.text}"
        token = self.expect("ID", where, cure)
        return Name(token.text, token.position)

    # -- the whole ---------------------------------------------------------------------------

    def program(self) -> Program:
        form = "a program is: function (A[N], B) -> (C) { C = A + B; }"
        self.expect("function", "at the start", form)
        self.expect("(", "after 'function'", form)
        inputs = [] if self.is_next(")") else self.separated(self.input)
        self.expect(")", "after the inputs", form)
        self.expect("->", "after the inputs", form)
        self.expect("(", "before the outputs", form)
        outputs = self.separated(lambda: self.name("among the outputs"))
        self.expect(")", "after the outputs", "outputs are listed by name only: -> (A, B)")
        self.expect("{", "before the statements", form)
        statements: list[Statement] = []
        while not self.is_next("}"):
            if self.is_next("end"):
                raise self.refused("the function does not end", "close it with '}'")
            statements.append(self.statement())
        self.take()
        if not self.is_next("end"):
            raise self.refused(f"{self.found()} follows the function", "a program is one function")
        return Program(self.source, tuple(inputs), tuple(outputs), tuple(statements))

    def input(self) -> Input:
        name = self.name("among the inputs")
        if not self.accept("["):
            return Input(name, None)
        cure = "the sizes of an input are names: A[N, M]; check or compute sizes in the body"
        sizes: list[Name] = []
        if not self.is_next("]"):
            sizes = self.separated(lambda: self.name("among the sizes of an input", cure))
        self.expect("]", "after the sizes of an input", cure)
        return Input(name, tuple(sizes))

    def attributes(self) -> tuple[Attribute, ...]:
        found: list[Attribute] = []
        while self.accept("[["):
            name = self.expect("IDX", "in an attribute", "an attribute is [[name(parameters)]]")
            parameters: list[str] = []
            if self.accept("("):
                parameters = self.separated(self.attribute_parameter)
                self.expect(")", "after the parameters of an attribute")
            self.expect("]]", "after an attribute", "an attribute is [[name(parameters)]]")
            found.append(Attribute(name.text, tuple(parameters)))
        return tuple(found)

    def attribute_parameter(self) -> str:
        if not self.is_next("ID", "IDX"):
            raise self.refused(
                f"{self.found()} is not a parameter of an attribute", "parameters are names"
            )
        return self.take().text

    def statement(self) -> Statement:
        attributes = self.attributes()
        name = self.name(
            "at the start of a statement",
            "a statement is A = expression; or A[i: N] = +(B[i, j]);",
        )
        if self.is_next("["):
            made: Statement = self.contraction(name, attributes)
        else:
            self.expect(
                "=", f"after {name.name!r}", "a statement is A = expression; or a contraction"
            )
            made = Assignment(name, self.expression(), attributes)
        if not self.is_next(";"):
            raise self.after_statement(made)
        self.take()
        return made

    def after_statement(self, made: Statement) -> TileSyntaxError:
        if isinstance(made, Assignment):
            if self.is_next("<", "<=", ">", ">=", "==", "!="):
                return self.chained_comparison()
            if self.is_next("[") and not isinstance(made.value, Number):
                return self.indexed_expression()
        elif self.is_next("<=", ">", ">=", "==", "!="):
            return self.other_comparison()
        elif self.is_next(",") and (made.default or made.no_defract):
            return self.refused(
                "a constraint after the default", "constraints come first: , i < N default D;"
            )
        before = self.tokens[self.at - 1]
        is_close = before.position + len(before.text) == self.token.position
        if before.kind in ("int", "float") and self.is_next("ID", "IDX") and is_close:
            return self.refused(
                f"{self.found()} right after a number",
                "write the operator: 2 * N; index variables alone may follow one, as in A[2i]",
            )
        cure = _NUMBERS if self.is_next(".") else "end each statement with ';'"
        return self.refused(f"';' is missing; there is {self.found()}", cure)

    # -- contractions ------------------------------------------------------------------------

    def contraction(self, name: Name, attributes: tuple[Attribute, ...]) -> Contraction:
        self.take()
        indices: list[Expression] = []
        sizes: tuple[Expression, ...] | None = None
        if self.accept(":"):
            sizes = ()
        elif not self.is_next("]"):
            indices = self.separated(self.index_expression)
            if self.accept(":"):
                sizes = tuple(self.separated(self.expression))
        self.expect("]", "after the indices", "the output of a contraction is O[i, j: N, M]")
        form = "a contraction is O[i: N] = +(A[i, j] * B[j]); with one of + * > < = before '('"
        self.expect("=", f"after {name.name}[...]", form)
        if not self.is_next(*_AGGREGATIONS):
            raise self.refused(f"{self.found()} is not an aggregation", form)
        aggregation = self.take().kind
        self.expect("(", "after the aggregation", form)
        operands, combination = self.body()
        constraints: list[Constraint] = []
        while self.accept(","):
            constraints.append(self.constraint())
        default: Name | None = None
        no_defract = False
        while self.is_next("no_defract", "default"):
            if self.take().kind == "no_defract":
                no_defract = True
            elif default is not None:
                raise self.refused("a second default", "a contraction has one default at most")
            else:
                default = self.name("after 'default'", "the default is a tensor's name")
        return Contraction(
            name,
            tuple(indices),
            sizes,
            aggregation,
            operands,
            combination,
            tuple(constraints),
            default,
            no_defract,
            attributes,
        )

    def body(self) -> tuple[tuple[Reference, ...], str]:
        operands = [self.reference()]
        combination = ""
        if self.is_next("*", "+", "=="):
            combination = self.take().kind
            operands.append(self.reference())
            if self.is_next("?"):
                if combination != "==":
                    raise self.refused(
                        f"'?' follows a comparison, not {combination!r}",
                        "the conditional form is +(A[i] == B[j] ? C[k])",
                    )
                self.take()
                combination = "?"
                operands.append(self.reference())
        if not self.is_next(")"):
            raise self.refused(
                f"{self.found()} in a contraction, whose operands are A[i], A[i] * B[j], "
                "A[i] + B[j], A[i] == B[j] or A[i] == B[j] ? C[k]",
                "compute the rest in a statement of its own, before or after",
            )
        self.take()
        return tuple(operands), combination

    def reference(self) -> Reference:
        if self.is_next("ID"):
            name = self.name("")
            if self.accept("["):
                indices = [] if self.is_next("]") else self.separated(self.index_expression)
                self.expect("]", "after the indices", "an operand is A[i, j]")
                return Reference(name, tuple(indices))
            raise self.refused(
                f"{name.name} has no indices in a contraction",
                f"write {name.name}[i], or {name.name}[] for one of rank 0; functions and "
                "expressions go to a statement of their own",
                name.position,
            )
        raise self.refused(
            f"{self.found()} in a contraction, whose operands are tensors with indices only",
            "give the literal or the expression a name first: Two = 2; O[] = +(Two[] * A[i]);",
        )

    def constraint(self) -> Constraint:
        value = self.index_expression()
        if not self.is_next("<"):
            if self.is_next("<=", ">", ">=", "==", "!=", "="):
                raise self.other_comparison()
            raise self.refused(
                f"'<' is missing in a constraint; there is {self.found()}",
                "a constraint is: , i - k < N",
            )
        position = self.take().position
        return Constraint(value, self.expression(), position)

    def other_comparison(self) -> TileSyntaxError:
        return self.refused(
            f"a constraint is written with '<' only, not {self.token.text!r}",
            "turn it round or add 1: i <= N is i < N + 1; its value is at least 0 as well",
        )

    # -- index expressions -------------------------------------------------------------------

    def index_expression(self) -> Expression:
        return self.chain(lambda: self.chain(self.index_unary, "*", "/"), "+", "-")

    def chain(self, operand: Callable[[], Expression], *signs: str) -> Expression:
        """Return operands joined by operators of one level, from left to right."""
        left = operand()
        while self.is_next(*signs):
            sign = self.take()
            left = self.made(sign.kind, (left, operand()), sign.position)
        return left

    def index_unary(self) -> Expression:
        token = self.token
        if token.kind == "-":
            self.take()
            return self.made("neg", (self.nested(self.index_unary),), token.position)
        if token.kind == "(":
            self.take()
            inner = self.nested(self.index_expression)
            self.expect(")", "in an index expression")
            return inner
        if token.kind == "int":
            self.take()
            number = self.integer(token)
            if self.is_next("IDX"):  # 2i
                index = self.take()
                return self.made("*", (number, Index(index.text, index.position)), token.position)
            return number
        if token.kind == "ID":
            self.take()
            if self.is_next("(", "["):
                raise self.refused(
                    f"{token.text}{self.token.text}...: an index expression holds no tensor and "
                    "no function",
                    "compute sizes in a statement before; to index by values use gather",
                )
            return Name(token.text, token.position)
        if token.kind == "IDX":
            self.take()
            if self.is_next("("):
                raise self.refused(
                    f"{token.text}(...): an index expression holds no function",
                    "compute it in a statement before: P = max(N, M);",
                    token.position,
                )
            return Index(token.text, token.position)
        if token.kind == "float":
            raise failure(
                TileTypeError,
                self.source,
                token.position,
                f"the float {token.text} in an index expression",
                "index expressions are exact: write fractions of integers, i/2",
            )
        raise self.refused(
            f"{self.found()} is not part of an index expression",
            "index expressions are made of index variables, integers, sizes, + - * / and ()",
        )

    # -- expressions -------------------------------------------------------------------------

    def made(self, function: str, operands: tuple[Expression, ...], position: int) -> Call:
        """Return a call; raise if the tree becomes too high for Python's stack."""
        height = 1 + max([self.heights.get(id(each), 0) for each in operands])
        if height > _MAX_HEIGHT:
            raise self.refused(
                f"the expression has more than {_MAX_HEIGHT} operations, each an operand of the "
                "next",
                "name parts of it first",
            )
        call = Call(function, operands, position)
        self.heights[id(call)] = height
        return call

    def integer(self, token: Token) -> Number:
        if len(token.text) > _MAX_DIGITS:
            raise failure(
                TileSyntaxError,
                self.source,
                token.position,
                f"the integer has {len(token.text)} digits",
                f"a number has at most {_MAX_DIGITS} digits",
            )
        return Number(int(token.text), token.position)

    def nested(self, rule: object) -> Expression:
        if self.depth >= _DEEPEST:
            raise self.refused(
                f"the expression is nested more than {_DEEPEST} deep", "name parts of it first"
            )
        self.depth += 1
        try:
            return rule()  # type: ignore[operator]
        finally:
            self.depth -= 1

    def expression(self) -> Expression:
        condition = self.binary(0)
        while self.is_next("?"):
            sign = self.take()
            first = self.nested(self.expression)
            self.expect(":", "after '?'", "a choice is: condition ? value : other")
            condition = self.made("?", (condition, first, self.binary(0)), sign.position)
        return condition

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        count = 0
        while self.is_next(*_LEVELS[level]):
            if count and level in _UNCHAINED:
                raise self.chained_comparison()
            sign = self.take()
            left = self.made(sign.kind, (left, self.binary(level + 1)), sign.position)
            count += 1
        return left

    def chained_comparison(self) -> TileSyntaxError:
        return self.refused(
            f"comparisons do not chain: {self.found()} follows a comparison",
            "put parentheses around the first: (a < b) < c",
        )

    def indexed_expression(self) -> TileSyntaxError:
        return self.refused(
            "an elementwise expression has no indices",
            "write a contraction: O[i: N] = =(A[i]); or leave the indices out",
        )

    def unary(self) -> Expression:
        token = self.token
        if token.kind in ("-", "~"):
            self.take()
            sign = "neg" if token.kind == "-" else "~"
            return self.made(sign, (self.nested(self.unary),), token.position)
        if token.kind == "(":
            self.take()
            inner = self.nested(self.expression)
            self.expect(")", "in an expression", "close the parenthesis")
            return inner
        if token.kind == "int":
            self.take()
            return self.integer(token)
        if token.kind == "float":
            self.take()
            return Number(float(token.text), token.position)
        if token.kind in ("ID", "IDX"):
            self.take()
            if self.is_next("("):
                return self.call(token)
            if self.is_next("["):
                raise self.indexed_expression()
            if token.kind == "ID":
                return Name(token.text, token.position)
            return Index(token.text, token.position)
        if token.kind in RESERVED:
            raise self.refused(f"{token.text!r} is a reserved word", f"write #{token.text}")
        cure = "a value is a number, a name, a function of values or (expression)"
        if token.kind in ("&", "|") and self.tokens[self.at - 1].kind == token.kind:
            cure = f"{token.kind * 2} is no operator; between Booleans write {token.kind}"
        elif token.kind == ".":
            cure = _NUMBERS
        raise self.refused(f"{self.found()} where a value belongs", cure)

    def call(self, name: Token) -> Expression:
        self.take()
        if self.is_next(")"):
            raise self.refused(
                f"{name.text}() has no argument", "a function has at least one argument"
            )
        operands = self.separated(lambda: self.nested(self.expression))
        self.expect(")", f"after the arguments of {name.text}")
        return self.made(name.text, tuple(operands), name.position)
