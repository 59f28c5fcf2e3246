"""Hide that an address in private memory is one of two.

The driver interleaves private memory by elements of all work-items. It also converts an index
selected from two numbers to a selected pointer. It does not change a pointer that was a number, or
an index with an opaque part.

Defect of Intel's CPU driver 2026.2: wrong elements are accessed through a pointer to private memory
    that a condition selects.
Tests: test_an_element_is_taken_by_a_condition, test_an_element_is_taken_by_parity_with_sub_groups.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.opaque import opaque_zero

_CHOICES = re.compile(
    r"^  (?P<name>%\S+) = select i1 (?P<is_first>[^\s,]+), ptr (?P<a>[^\s,]+), ptr (?P<b>[^\s,]+)$",
    re.MULTILINE,
)
_PLACES = re.compile(
    r"^(?P<head>  %\S+ = getelementptr [^\n]*, ptr %[^\n]*, i64 )(?P<at>%\S+)$", re.MULTILINE
)
_OF_TWO = re.compile(
    r"^  (?P<name>%\S+) = (?:(?:and i\d+ [^\n]*, 1|zext (?:nneg )?i1 [^\n]*|lshr i64 [^\n]*, 63"
    r"|lshr i32 [^\n]*, 31|select i1 [^\n]*, i\d+ -?\d+, i\d+ -?\d+)"
    r"|(?:[sz]ext (?:nneg )?|trunc (?:nuw |nsw )*|xor |add (?:nuw |nsw )*)i\d+ (?P<given>%[^\s,]+)"
    r"(?: to i\d+|, -?\d+))$",
    re.MULTILINE,
)


def apply(text: str) -> str:
    if " alloca " not in text:
        return text
    of_two: set[str] = set()
    for found in _OF_TWO.finditer(text):
        if found["given"] is None or found["given"] in of_two:
            of_two.add(found["name"])

    def hide_pointer(of: re.Match[str]) -> str:
        a, b, chosen, at = (f"%dparray.{name}.{of.start()}" for name in ("a", "b", "chosen", "at"))
        none, lines = opaque_zero(f"of.pointer.{of.start()}", "i64")
        lines += [
            f"  {a} = ptrtoint ptr {of['a']} to i64",
            f"  {b} = ptrtoint ptr {of['b']} to i64",
            f"  {chosen} = select i1 {of['is_first']}, i64 {a}, i64 {b}",
            f"  {at} = xor i64 {chosen}, {none}",
            f"  {of['name']} = inttoptr i64 {at} to ptr",
        ]
        return "\n".join(lines)

    def hide_index(of: re.Match[str]) -> str:
        if of["at"] not in of_two:
            return of[0]
        at = f"%dparray.index.{of.start()}"
        none, lines = opaque_zero(f"of.index.{of.start()}", "i64")
        return "\n".join([*lines, f"  {at} = xor i64 {of['at']}, {none}", f"{of['head']}{at}"])

    return _PLACES.sub(hide_index, _CHOICES.sub(hide_pointer, text))
