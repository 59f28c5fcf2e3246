"""Values that Intel's CPU driver does not look through, and the functions that compute them."""

import re

FIRST_ID = "@_Z13get_global_idj"
NO_BYTES = "@_Z7sub_satll"
DIMENSIONS = "@_Z12get_work_dimv()"
UNCHANGED = {
    kind: f"@_Z7add_sat{2 * code}"
    for kind, code in (("i8", "c"), ("i16", "s"), ("i32", "i"), ("i64", "l"))
}


def opaque_zero(name: str, kind: str) -> tuple[str, list[str]]:
    """Return a zero that is opaque to the driver, and the lines that compute it."""
    dimensions, none, wide = (f"%dparray.{of}.{name}" for of in ("dimensions", "none", "wide"))
    lines = [
        f"  {dimensions} = call spir_func i32 {DIMENSIONS}",
        f"  {none} = lshr i32 {dimensions}, 2",
    ]
    if kind == "i32":
        return none, lines
    return wide, [*lines, f"  {wide} = {'zext' if kind == 'i64' else 'trunc'} i32 {none} to {kind}"]


_FUNCTIONS = (
    *(f"i64 {FIRST_ID}(i32)", f"i64 {NO_BYTES}(i64, i64)", f"i32 {DIMENSIONS}"),
    *(f"{kind} {name}({kind}, {kind})" for kind, name in UNCHANGED.items()),
)


def declare(text: str) -> str:
    """Return a module's text with declarations of the functions that the rules call."""
    for called in _FUNCTIONS:
        name = re.escape(called[: called.index("(") + 1].split()[1])
        if re.search(name, text) and not re.search(rf"^declare .*{name}", text, re.MULTILINE):
            text += f"\ndeclare spir_func {called}\n"
    return text
