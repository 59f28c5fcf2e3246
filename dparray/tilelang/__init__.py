"""The Tile language: tensor operations written as index arithmetic, on any device.

:func:`function` makes a function of arrays from a program; it finds the range of every index::

    conv = dp.tilelang.function('''
        function (I[N, L, C], K[T, C, F]) -> (O) {
            O[n, x, f: N, L - T + 1, F] = +(I[n, x + t, c] * K[t, c, f]);
        }''')

The language is that of PlaidML, version 0. In: a program and arrays. Out: arrays. Imports: rows up
to ``functions``.

**Programs.** The grammar; ``{x}`` stands for any number of ``x``, ``[x]`` for at most one::

    program     = "function" "(" [input {"," input}] ")" "->" "(" ID {"," ID} ")" "{" {line} "}"
    input       = ID | ID "[" "]" | ID "[" ID {"," ID} "]"
    line        = {"[[" IDX ["(" name {"," name} ")"] "]]"} (ID "=" expr | contraction) ";"
    contraction = out "=" agg "(" body ")" {"," poly "<" expr} {"no_defract" | "default" ID}
    out         = ID "[" "]" | ID "[" ":" "]" | ID "[" poly {"," poly} ":" expr {"," expr} "]"
    agg         = "+" | "*" | ">" | "<" | "="
    body        = ref | ref "*" ref | ref "+" ref | ref "==" ref ["?" ref]
    ref         = ID "[" [poly {"," poly}] "]"
    poly        = INT | ID | IDX | INT IDX | "-" poly | "(" poly ")" | poly ("+"|"-"|"*"|"/") poly
    expr        = INT | FLOAT | ID | name "(" expr {"," expr} ")" | "(" expr ")" | "-" expr
                | "~" expr | expr binary expr | expr "?" expr ":" expr

Capitalized names (ID) are tensors and sizes, lowercase names (IDX) are index variables; ``#a`` and
``$A`` reverse this. Binary operators, from lowest to highest precedence: ``^``, ``|``, ``&``, ``==
!=``, ``< > <= >=``, ``<< >>``, ``+ -``, ``* /``; ``? :`` has the lowest precedence and associates
to the left. There are no comments. Every name is assigned once, before it is used.

**Contractions.** A point is a choice of integers for all index variables. It is valid if every
index is an integer within its axis and every constraint ``q < b`` holds as ``0 <= q < b``; there
are no other bounds. Index expressions are affine, with exact fractions: ``i / 2`` is an index only
if ``i`` is even. The values at the valid points of an output element are summed (``+``) or
multiplied (``*``), or the maximum (``>``) or minimum (``<``) is taken. Maximum and minimum ignore
NaN unless the attribute ``[[propagate_nan]]`` precedes the statement. ``=`` requires at most one
value. Elements without a point are 0, or those of ``default``. The computation uses the dtype of
the result: integers wrap around, and the sum of Booleans is *or*. ``A == B ? C`` is ``C`` where the
two are equal, else 0.

**Sizes** are integers that are known together with shapes: ``+ - * /`` (which truncates),
comparisons, ``? :`` and ``mod max min abs ceil floor recip broadcast match ident assert_...`` of
literals and sizes.

**Element-wise statements** broadcast as in NumPy. The functions besides the operators:

- ``abs max min relu sigmoid exp log sqrt sin cos tan sinh cosh tanh asin acos atan floor ceil round
  pow recip neg cond ident``;
- the casts ``as_float(x, 16|32|64)``, ``as_int(x, 8|16|32|64)``, ``as_uint(x, ...)``,
  ``as_bool(x, 1)``;
- ``index(T, axis)``, ``shape(T)``, ``reshape(T, sizes...)``;
- ``gather(D, I)`` and ``scatter(E, I, V)`` of rows (indices are clamped, colliding values are
  added);
- ``tuple(...)`` and ``element(t, n)``; ``prng_step(S, sizes...)`` with ``prng_state`` and
  ``prng_value``;
- ``builtin_softmax(X, rows, columns)``, ``builtin_logsoftmax``, ``builtin_binary_crossentropy`` and
  ``reverse_grad``.

**Dtypes.** Two dtypes promote to the float, else the wider, else the left one. Integer literals and
sizes are int32, float literals :func:`floatx`. Functions of real numbers convert integers to
floats.

Results are pending. Contractions with bare indices are views, and fuse with array code before and
after; other contractions are fused into one kernel with later operations. ``dp.explain(function,
*inputs)`` shows the choice. Kernels are cached by structure, so shapes of one kind share them, in
memory and on disk.
"""

from dparray.exceptions import (
    TileError,
    TileIndexError,
    TileNameError,
    TileShapeError,
    TileSyntaxError,
    TileTypeError,
)
from dparray.tilelang.function import TileFunction, function
from dparray.tilelang.invocation import Invocation
from dparray.tilelang.layers import conv, dense
from dparray.tilelang.pooling import avg_pool, max_pool
from dparray.tilelang.values import TileWarning, floatx, set_floatx

__all__ = [
    "Invocation",
    "TileError",
    "TileFunction",
    "TileIndexError",
    "TileNameError",
    "TileShapeError",
    "TileSyntaxError",
    "TileTypeError",
    "TileWarning",
    "avg_pool",
    "conv",
    "dense",
    "floatx",
    "function",
    "max_pool",
    "set_floatx",
]
