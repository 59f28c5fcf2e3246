"""Types of the functions that are made from the op table; a test holds them against it."""

from typing import Any, Protocol, overload

from dparray._array.ndarray import ndarray

class Methods(Protocol):
    """What NumPy's ufuncs have beyond being called; only those that a function has."""

    nin: int
    nout: int
    def reduce(
        self,
        x: Any,
        /,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> ndarray: ...
    def accumulate(
        self, x: Any, /, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray: ...
    def reduceat(
        self, x: Any, indices: Any, /, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray: ...
    def outer(self, x1: Any, x2: Any, /, out: ndarray | None = None) -> ndarray: ...
    def at(self, x: Any, indices: Any, values: Any = None, /) -> None: ...

class Unary(Methods, Protocol):
    def __call__(
        self,
        x: Any,
        /,
        out: ndarray | None = None,
        *,
        where: Any = True,
        dtype: Any = None,
        casting: str = "same_kind",
        order: str = "K",
        subok: bool = True,
    ) -> ndarray: ...

class Binary(Methods, Protocol):
    def __call__(
        self,
        x1: Any,
        x2: Any,
        /,
        out: ndarray | None = None,
        *,
        where: Any = True,
        dtype: Any = None,
        casting: str = "same_kind",
        order: str = "K",
        subok: bool = True,
    ) -> ndarray: ...

add: Binary
subtract: Binary
multiply: Binary
divide: Binary
true_divide: Binary
floor_divide: Binary
remainder: Binary
mod: Binary
pow: Binary
power: Binary
atan2: Binary
arctan2: Binary
hypot: Binary
copysign: Binary
nextafter: Binary
logaddexp: Binary
maximum: Binary
minimum: Binary
equal: Binary
not_equal: Binary
less: Binary
less_equal: Binary
greater: Binary
greater_equal: Binary
logical_and: Binary
logical_or: Binary
logical_xor: Binary
bitwise_and: Binary
bitwise_or: Binary
bitwise_xor: Binary
bitwise_left_shift: Binary
left_shift: Binary
bitwise_right_shift: Binary
right_shift: Binary
abs: Unary
absolute: Unary
negative: Unary
positive: Unary
sign: Unary
square: Unary
sqrt: Unary
cbrt: Unary
reciprocal: Unary
exp: Unary
exp2: Unary
expm1: Unary
log: Unary
log2: Unary
log10: Unary
log1p: Unary
sin: Unary
cos: Unary
tan: Unary
asin: Unary
arcsin: Unary
acos: Unary
arccos: Unary
atan: Unary
arctan: Unary
sinh: Unary
cosh: Unary
tanh: Unary
asinh: Unary
arcsinh: Unary
acosh: Unary
arccosh: Unary
atanh: Unary
arctanh: Unary
floor: Unary
ceil: Unary
trunc: Unary
rint: Unary
isfinite: Unary
isinf: Unary
isnan: Unary
signbit: Unary
logical_not: Unary
bitwise_invert: Unary
invert: Unary
bitwise_not: Unary
conj: Unary
conjugate: Unary

def rsqrt(x: Any, /, out: ndarray | None = None) -> ndarray: ...
def real(x: Any, /) -> ndarray: ...
def imag(x: Any, /) -> ndarray: ...
def angle(x: Any, /, deg: bool = False) -> ndarray: ...
@overload
def where(condition: Any, /) -> tuple[ndarray, ...]: ...
@overload
def where(condition: Any, x1: Any, x2: Any, /) -> ndarray: ...
def clip(
    x: Any,
    min: Any = None,
    max: Any = None,
    out: ndarray | None = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
) -> ndarray: ...
