"""Rules for vectors of LLVM that its back end for SPIR-V cannot write."""

import re

from dparray._compiler.back_ends.spirv.text import NAMES, element_of

_WIDTHS = (2, 3, 4, 8, 16)
_VECTORS = re.compile(
    r"^(?P<head> +(?P<name>%\S+) = (?:load |bitcast [^\n]* to ))"
    r"<(?P<count>\d+) x i(?P<bits>8|16|32)>(?P<rest>[^\n]*)$",
    re.MULTILINE,
)


def divide(text: str) -> str:
    """Divide memory into elements of SPIR-V's vectors.

    LLVM represents a part of an element, such as a truncated one, as an element of a vector with
    more and smaller elements.

    Defect of LLVM 22: vectors of 6 and 32 elements, which SPIR-V does not have.
    Tests: test_parts_of_elements_are_no_elements_of_longer_vectors.
    """
    for found in list(_VECTORS.finditer(text)):
        count, bits = int(found["count"]), int(found["bits"])
        fitting = (wide for wide in (64, 32, 16) if count * bits % wide == 0)
        wide = next((each for each in fitting if count * bits // each in _WIDTHS), 0)
        if count in _WIDTHS or not wide:
            continue
        kind = f"<{count * bits // wide} x i{wide}>"
        text = text.replace(found[0], f"{found['head']}{kind}{found['rest']}")

        def part(taken: re.Match[str], kind: str = kind, wide: int = wide, bits: int = bits) -> str:
            name, vector, (lane, shift) = taken[1], taken[2], divmod(int(taken[3]) * bits, wide)
            plain = name.strip('%"')
            return (
                f'  %"{plain} whole" = extractelement {kind} {vector}, i64 {lane}\n'
                f'  %"{plain} moved" = lshr i{wide} %"{plain} whole", {shift}\n'
                f'  {name} = trunc i{wide} %"{plain} moved" to i{bits}'
            )

        element = (
            rf"^ +(%\S+) = extractelement <{count} x i{bits}> ({re.escape(found['name'])}), i\d+ "
        )
        text = re.sub(rf"{element}(\d+)$", part, text, flags=re.MULTILINE)
    return text


_SIGN_EXTENSIONS = re.compile(r"^ +(%\S+) = sext (<\d+ x i\d+>) (%\S+) to <", re.MULTILINE)
_ZERO_EXTENSIONS = re.compile(
    r"^ +(?P<name>%\S+) = zext (?:nneg )?<\d+ x i(?P<bits>\d+)> (?P<given>%\S+) "
    r"to (?P<kind><\d+ x i\d+>)$",
    re.MULTILINE,
)


def extend(text: str) -> str:
    """Complete the sign extension of a vector before its zero extension, which becomes a mask.

    Defect of LLVM 22: the back end combines a zero extension of a sign extension, and crashes if
        they are vectors.
    Tests: test_vectors_are_extended_by_signs_and_then_by_zeros.
    """
    by_signs = {name: (kind, given) for name, kind, given in _SIGN_EXTENSIONS.findall(text)}

    def masked(found: re.Match[str]) -> str:
        if found["given"] not in by_signs:
            return found[0]
        source, given = by_signs[found["given"]]
        name, kind = found["name"], found["kind"]
        whole = f'%"{name[1:].strip(chr(34))} whole"'
        element = element_of(kind)
        mask = (1 << int(found["bits"])) - 1
        return (
            f"  {whole} = sext {source} {given} to {kind}\n"
            f"  {name} = and {kind} {whole}, splat ({element} {mask})"
        )

    return _ZERO_EXTENSIONS.sub(masked, text) if by_signs else text


_KIND = r"(?:i\d+|<\d+ x i\d+>)"
_CUTS = re.compile(
    rf"^ +({NAMES.pattern}) = trunc (?:nuw |nsw )*({_KIND}) ({NAMES.pattern}) to {_KIND}$",
    re.MULTILINE,
)
_CUT_EXTENSIONS = re.compile(
    rf"^ +(?P<name>{NAMES.pattern}) = zext (?:nneg )?(?P<cut>{_KIND}) (?P<given>{NAMES.pattern}) "
    rf"to (?P<kind>{_KIND})$",
    re.MULTILINE,
)


def truncate(text: str) -> str:
    """Mask numbers in the width of their use, instead of truncating them below it.

    LLVM's passes leave none of these behind, except from parts of elements.

    Defect of LLVM 22: a truncated and zero-extended number is masked in its original width,
        whatever the target type: a 64-bit integer in a 32-bit operation, which all drivers reject.
    Tests: test_a_part_of_an_element_is_extended_to_fewer_bits_than_the_element_has,
        test_truncated_integers_are_extended_in_one_type.
    """
    cuts = {name: (kind, given) for name, kind, given in _CUTS.findall(text)}

    def masked(found: re.Match[str]) -> str:
        source, given = found["cut"], found["given"]
        while given in cuts:
            source, given = cuts[given]
        name, kind = found["name"], found["kind"]
        element = element_of(kind)
        if int(element_of(source)[1:]) <= int(element[1:]):
            return found[0]
        mask = (1 << int(element_of(found["cut"])[1:])) - 1
        whole = f'%"{name[1:].strip(chr(34))} uncut"'
        bits = f"{mask}" if kind == element else f"splat ({element} {mask})"
        cut = f"  {whole} = trunc {source} {given} to {kind}"
        return f"{cut}\n  {name} = and {kind} {whole}, {bits}"

    return _CUT_EXTENSIONS.sub(masked, text) if cuts else text
