"""The public table of supported operators."""

from __future__ import annotations

from typing import NamedTuple

import onnx

from dparray.onnx.operator_table import ROWS


class SupportedOperator(NamedTuple):
    """An operator that dparray computes.

    Attributes:
        name: its name, with its domain unless that is the standard's.
        opsets: the first and the last opset.
        dtypes: the dtypes of its first input, as far as the standard lists them.
        how: ``"row"`` by dparray functions, ``"function"`` by the standard's function body,
            ``"user"`` by a function registered with :func:`operator`.
    """

    name: str
    opsets: tuple[int, int]
    dtypes: tuple[str, ...]
    how: str


def supported() -> list[SupportedOperator]:
    """Return the supported operators, by name.

    Example:
        >>> [each.how for each in dp.onnx.supported() if each.name in ("Conv", "Relu")]
        ['row', 'row']
    """
    newest = onnx.defs.onnx_opset_version()
    result = []
    known = {schema.name: schema for schema in onnx.defs.get_all_schemas() if not schema.domain}
    for (domain, name), row in ROWS.items():
        if row.is_users:
            label = f"{domain}::{name}" if domain else name
            result.append(SupportedOperator(label, (row.since, newest), (), "user"))
        elif name in known:
            result.append(_standard(name, row.since, newest, known[name], "row"))
    first: dict[str, int] = {}  # the first opset whose standard has a function body
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.has_function or schema.has_context_dependent_function:
            first[schema.name] = min(schema.since_version, first.get(schema.name, newest))
    for name in first.keys() & known.keys():
        if ("", name) not in ROWS:
            result.append(_standard(name, first[name], newest, known[name], "function"))
    return sorted(result)


def _standard(
    name: str, since: int, newest: int, schema: onnx.defs.OpSchema, how: str
) -> SupportedOperator:
    first = next(version for version in range(1, newest + 1) if onnx.defs.has(name, version))
    kinds = schema.inputs[0].types if schema.inputs else ()
    dtypes = sorted(kind[len("tensor(") : -1] for kind in kinds if kind.startswith("tensor("))
    return SupportedOperator(name, (max(first, since), newest), tuple(dtypes), how)
