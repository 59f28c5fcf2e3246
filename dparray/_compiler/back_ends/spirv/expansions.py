"""Define intrinsics that LLVM generates from plain code.

Defect of LLVM 22: the back end crashes for bit reversal, and for sums with overflow tests; drivers
    crash for its code for products with overflow tests.
Tests: test_a_sum_that_does_not_fit_is_found, test_a_product_that_overflows_is_found_by_dividing,
    test_bits_in_reverse, test_each_width_of_an_expansion_gives_its_numbers.
"""

import re

_EXPANDED = r"bitreverse|s(?:add|sub)\.with\.overflow|[us]mul\.with\.overflow"
_DECLARATION = re.compile(
    rf"^declare [^@\n]*@llvm\.(?P<name>{_EXPANDED})\.i(?P<width>8|16|32|64)\([^\n]*$",
    re.MULTILINE,
)


def apply(text: str) -> str:
    definitions = []
    helpers = set()
    for found in _DECLARATION.finditer(text):
        name, width = found["name"], int(found["width"])
        if name == "bitreverse":
            definitions.append(_reversal(width))
        elif "mul" not in name:
            definitions.append(_sum(width, name))
        else:
            definition, helper = _product(width, signed=name.startswith("s"))
            definitions.append(definition)
            helpers.add(helper)
    if not definitions:
        return text
    text = _DECLARATION.sub("", text)
    text = re.sub(rf"@llvm\.({_EXPANDED})\.i(8|16|32|64)\b", r"@dparray.\1.i\2", text)
    declared = [helper for helper in sorted(helpers) if helper not in text]
    return "\n".join([text, *declared, *definitions])


def _reversal(width: int) -> str:
    """Return the definition of bit reversal: swap neighbors, then pairs, and so on."""
    kind = f"i{width}"
    lines = [f"define internal {kind} @dparray.bitreverse.{kind}({kind} %v0) {{"]
    step, at = 1, 0
    while step < width:
        mask = sum(((1 << step) - 1) << bit for bit in range(0, width, 2 * step))
        lines += [
            f"  %a{at} = lshr {kind} %v{at}, {step}",
            f"  %b{at} = and {kind} %a{at}, {mask}",
            f"  %c{at} = and {kind} %v{at}, {mask}",
            f"  %d{at} = shl {kind} %c{at}, {step}",
            f"  %v{at + 1} = or {kind} %b{at}, %d{at}",
        ]
        step, at = 2 * step, at + 1
    return "\n".join([*lines, f"  ret {kind} %v{at}", "}", ""])


def _sum(width: int, name: str) -> str:
    """Return the definition of a sum or difference with overflow, which the signs show."""
    kind, both = f"i{width}", f"{{ i{width}, i1 }}"
    operation = name[1:4]
    # A sum overflows if both operands have the other sign; a difference, by the operands' signs.
    other = "%low" if operation == "add" else "%a"
    return f"""define internal {both} @dparray.{name}.{kind}({kind} %a, {kind} %b) {{
  %low = {operation} {kind} %a, %b
  %first = xor {kind} %a, %low
  %second = xor {kind} %b, {other}
  %signs = and {kind} %first, %second
  %over = icmp slt {kind} %signs, 0
  %half = insertvalue {both} undef, {kind} %low, 0
  %whole = insertvalue {both} %half, i1 %over, 1
  ret {both} %whole
}}
"""


_CODES = {8: "ha", 16: "ts", 32: "ji", 64: "ml"}


def _product(width: int, *, signed: bool) -> tuple[str, str]:
    """Return the definition of a product with overflow by its upper half, and the declaration."""
    kind = f"i{width}"
    name = f"@dparray.{'s' if signed else 'u'}mul.with.overflow.{kind}"
    upper = f"@_Z6mul_hi{2 * _CODES[width][signed]}"
    both = f"{{ {kind}, i1 }}"
    fill = f"ashr {kind} %low, {width - 1}" if signed else f"and {kind} %low, 0"
    definition = f"""define internal {both} {name}({kind} %a, {kind} %b) {{
  %low = mul {kind} %a, %b
  %high = call spir_func {kind} {upper}({kind} %a, {kind} %b)
  %fill = {fill}
  %over = icmp ne {kind} %high, %fill
  %half = insertvalue {both} undef, {kind} %low, 0
  %whole = insertvalue {both} %half, i1 %over, 1
  ret {both} %whole
}}
"""
    return definition, f"declare spir_func {kind} {upper}({kind}, {kind})"
