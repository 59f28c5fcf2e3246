"""Hide the operands of comparisons that decide a branch, if computed from work-item ids.

The driver converts the conditions at the beginning of a kernel to bounds of its loop over a group's
work-items. This is correct for signed comparisons of an id itself. The driver does not look through
a function call, here one that returns its first argument, and then masks those work-items.

Only comparisons that decide a branch are hidden: one in a select does not bound a loop, and hidden
addresses would no longer be recognized as neighbors (a convolution takes 8 times as long).
Conditions on a group's id are not hidden: they are uniform in the group, and hiding them costs
masks (half of the time of a convolution).

Defect of Intel's CPU driver 2026.0: after early returns by conditions on values computed from an
    id, by unsigned comparisons or by equality, work-items are skipped or repeated.
Tests: test_early_returns.py, test_only_conditions_that_decide_branches_are_hidden,
    test_conditions_on_the_id_of_a_group_are_not_hidden.
"""

import re

from dparray._compiler.back_ends.spirv.intel_cpu.opaque import UNCHANGED
from dparray._compiler.back_ends.spirv.text import BRANCHES, DEFINITIONS, NAMES, TRUTHS, reached

IDS = re.compile(r"@_Z\d+get_\w*id[jv]\(")
_IDS_OF_ITEMS = re.compile(r"@_Z\d+(?!get_group_id)get_\w*id[jv]\(")
PASSES_ON = re.compile(r"@(?:llvm\.|_Z\d+(?:min|max)[a-z]{2}\()")
_COMPARISONS = re.compile(
    r"^  (?P<name>%\S+) = icmp (?P<same>samesign )?(?P<order>\w+) (?P<type>i8|i16|i32|i64) "
    r"(?P<left>\S+), (?P<right>\S+)$",
    re.MULTILINE,
)
_OF_NONE = {"eq": "slt i64 {}, 1", "ne": "sgt i64 {}, 0"}


def apply(text: str) -> str:
    ids, computed = ids_and_computed(text, _IDS_OF_ITEMS)
    deciding = _deciding(text)

    def hide(found: re.Match[str]) -> str:
        if found["name"] not in deciding:
            return found[0]
        order, kind = found["order"], found["type"]
        sides, lines = [found["left"], found["right"]], []
        if found["same"]:  # with equal signs, both orders are equivalent
            order = order.replace("u", "s")
        if order in _OF_NONE and kind == "i64" and sides[0] in ids and sides[1] == "0":
            return f"  {found['name']} = icmp {_OF_NONE[order].format(sides[0])}"
        for place, side in enumerate(sides):
            if side in computed or (side in ids and not order.startswith("s")):
                hidden = f"%dparray.hidden.{found.start()}.{place}"
                given = f"{kind} {side}, {kind} 0"
                lines.append(f"  {hidden} = call spir_func {kind} {UNCHANGED[kind]}({given})")
                sides[place] = hidden
        compared = f"  {found['name']} = icmp {order} {kind} {sides[0]}, {sides[1]}"
        return "\n".join([*lines, compared])

    return _COMPARISONS.sub(hide, text)


def ids_and_computed(text: str, wanted: re.Pattern[str]) -> tuple[set[str], set[str]]:
    """Return the names of ids from the given functions, and of values computed from them.

    Values read from memory or returned by device functions count as independent of ids.
    """
    users: dict[str, list[str]] = {}
    ids = set()
    for name, operation, rest in DEFINITIONS.findall(text):
        if operation in ("call", "tail"):
            if wanted.search(rest):
                ids.add(name)
            if not PASSES_ON.search(rest):
                continue
        elif operation == "load":
            continue
        for used in NAMES.findall(rest):
            users.setdefault(used, []).append(name)
    return ids, reached(ids, users)


def _deciding(text: str) -> set[str]:
    """Return the names of the Booleans that decide branches, and of their operands."""
    made_of = {
        name: NAMES.findall(rest)
        for name, operation, rest in DEFINITIONS.findall(text)
        if (operation in TRUTHS and "i1" in rest) or (operation == "icmp" and " i8 " in rest)
    }
    decided = BRANCHES.findall(text)
    return {*decided, *reached(decided, made_of)}
