"""Names of NumPy that the namespace does not have, and why.

``dp.char`` and the like raise ``AttributeError``, as any name that is not there; the message says
what there is instead.
"""

from __future__ import annotations

from typing import Any

_STRINGS = "arrays hold numbers, not strings; keep text in NumPy arrays on the host"
_DATES = "arrays hold numbers, not dates; convert them to numbers on the host"
_RECORDS = "arrays have no fields; keep an array for each field"
_LONG = "devices compute in 64 bits at most; use float64 or complex128"
_OBJECTS = "arrays hold numbers, not Python objects"
_MATRICES = "use an array of two dimensions, and @ for products"
_ITERATORS = "write it with whole arrays, or as a kernel: dp.kernel, dp.elementwise"

_REASONS = {
    **dict.fromkeys(("bytes_", "char", "character", "str_", "strings"), _STRINGS),
    **dict.fromkeys(("busday_count", "busday_offset", "busdaycalendar", "datetime64"), _DATES),
    **dict.fromkeys(("datetime_as_string", "datetime_data", "is_busday", "isnat"), _DATES),
    "timedelta64": _DATES,
    **dict.fromkeys(("flexible", "rec", "recarray", "record", "void"), _RECORDS),
    **dict.fromkeys(("clongdouble", "complex256", "float128", "longdouble"), _LONG),
    **dict.fromkeys(("frompyfunc", "object_"), _OBJECTS),
    **dict.fromkeys(("asmatrix", "bmat", "matrix"), _MATRICES),
    **dict.fromkeys(("nditer", "nested_iters"), _ITERATORS),
    "fromregex": "read the text with NumPy and bring it to a device with dp.asarray",
    "ma": "write masks as arrays: dp.where, and where= of reductions",
    "memmap": "dp.load reads files through a bounded buffer",
    "polynomial": "there are dp.polyfit, dp.polyval and dp.poly1d",
    "emath": "convert to complex first: x.astype('complex128')",
}


def __getattr__(name: str) -> Any:
    reason = _REASONS.get(name)
    because = "" if reason is None else f": {reason}"
    raise AttributeError(f"module 'dparray' has no attribute {name!r}{because}")
