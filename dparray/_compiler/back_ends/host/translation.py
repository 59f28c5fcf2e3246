"""Translate a module of LLVM IR for SPIR-V to one for hosts, as text and without optimization."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from dparray._compiler.abi import (
    DECLARED,
    IN_ORDER,
    IN_ORDER_VALUE,
    LAUNCH_KERNEL,
    NEW_MEMORY,
    NOTE_STOP,
    SHARE_PARTS,
    Function,
    contracted,
    function_of,
    split,
)
from dparray._compiler.back_ends.host import functions
from dparray.exceptions import KernelCompileError

_HEAD = re.compile(
    r"^(?:target (?:datalayout|triple)|source_filename|!opencl\.ocl\.version"
    r"|; ModuleID|!\d+ = !\{i32 3, i32 0\}).*\n?",
    re.MULTILINE,
)
# The entry point, up to the label of its first block.
_ENTRY = re.compile(
    r"^define spir_kernel void @(?P<name>[-\w.$]+)\((?P<parameters>[^\n]*?)\)[^\n)]*\{\n"
    r"(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
_ID = re.compile(r"^  (%\S+) = (?:tail )?call spir_func i64 @_Z13get_global_idj\(i32 (\d)\)", re.M)
# The compilers name the sizes of a range so, and no parameters of users and generated kernels.
_BEYOND = re.compile(
    r"^  (?P<name>%\S+) = icmp sge i64 (?P<id>%\S+), (?P<extent>%\.\d+|%extent\d)$", re.M
)
_ROW_LENGTH = re.compile(r"(?<= = mul nsw i64 )%\S+, (%[\w.]+\.shape\.\d+)$", re.MULTILINE)
_LOCAL = re.compile(
    r"^@(?P<name>\"[^\"]+\"|[-\w.$]+) = internal addrspace\(3\) global (?P<kind>.+?) "
    r"(?:undef|poison|zeroinitializer)(?:, align \d+)?$",
    re.MULTILINE,
)
_NAME = re.compile(r"%(?:[-\w.$]+|\"[^\"]*\")")
_HALF = re.compile(r"\bhalf\b")
_NARROWING = re.compile(r"= fptrunc double (\S+) to half")
_SIZES = {"half": 2, "float": 4, "double": 8, "ptr": 8}
_ALIGNMENT = 64
#: Returns the address at an offset in a group's local memory.
LOCAL_MEMORY = "dparray.local"


class Head(NamedTuple):
    """The properties of a module that a driver needs beside its text.

    Attributes:
        entry: the name of the kernel.
        local_bytes: the size of the local variables of a group.
        local_parameters: the positions of the parameters in local memory, which are offsets.
        takes_range: whether the first parameters are the sizes of the launch.
        in_order: whether work-items run one after the other, and vectors are made of iterations.
    """

    entry: str
    local_bytes: int
    local_parameters: tuple[int, ...]
    takes_range: bool
    in_order: bool

    def line(self) -> str:
        """Return the comment with which the module's text begins."""
        return f"; dparray {json.dumps(self._asdict())}\n"


def size_of(kind: str) -> int:
    """Return the bytes of an LLVM type; of a struct with fields of several sizes, at most these."""
    if kind in _SIZES:
        return _SIZES[kind]
    if kind.startswith("i"):
        return max(1, int(kind[1:]) // 8)
    if kind.startswith("{"):
        fields = split(kind[1:-1])
        return len(fields) * max(map(size_of, fields))
    found = re.fullmatch(r"[\[<](\d+) x (.*)[\]>]", kind)
    assert found is not None, kind
    return int(found[1]) * size_of(found[2])


def translated(text: str, contracts: bool = False) -> tuple[Head, str]:
    """Return the module for hosts, without a triple and a data layout.

    Args:
        text: the compiler's module.
        contracts: whether products and sums may be contracted.

    Raises:
        KernelCompileError: it has no entry point.
    """
    in_order = IN_ORDER in text
    text = _HEAD.sub("", text).replace(IN_ORDER, "").replace(IN_ORDER_VALUE, "")
    entry = _ENTRY.search(text)
    if entry is None:
        raise KernelCompileError("the module of a kernel has no entry point", details=text)
    parameters = split(entry["parameters"])
    in_local = [at for at, each in enumerate(parameters) if each.startswith("ptr addrspace(3)")]
    body = _without_guards(entry["body"], [each.split()[-1] for each in parameters])
    takes_range = body != entry["body"]
    body = _with_row_lengths(body)
    # The driver's values have names beside those of the parameters, which users choose.
    own = {each.split()[-1]: f"%dp.arg{at}" for at, each in enumerate(parameters)}
    head_and_body = text[entry.start("parameters") : entry.start("body")] + body
    head_and_body = _NAME.sub(lambda found: own.get(found[0], found[0]), head_and_body)
    text = text[: entry.start("parameters")] + head_and_body + text[entry.end("body") :]
    text, local_bytes = _with_local_memory(text)
    text = re.sub(r" addrspace\(\d+\)", "", text)
    text = re.sub(r"addrspacecast (\(?)ptr", r"bitcast \1ptr", text)
    text = re.sub(
        r"(@llvm\.[\w.]*?)((?:\.p[0-9])+)",
        lambda found: found[1] + re.sub(r"p\d", "p0", found[2]),
        text,
    )
    text = text.replace("spir_kernel ", "").replace("spir_func ", "")
    text = _NARROWING.sub(rf"= call half @{functions.NARROWED}(double \1)", text)
    if contracts:
        text = contracted(text)
    wanted: list[Function] = []

    def note(found: re.Match[str]) -> str:
        result, quoted, plain, rest = found.groups()
        name = quoted or plain
        of_host = name in (LAUNCH_KERNEL, NEW_MEMORY, NOTE_STOP, SHARE_PARTS)
        if name.startswith("llvm.") or functions.is_joint(name) or of_host:
            return found[0]
        wanted.append(function_of(name, result, rest))
        return ""

    text = DECLARED.sub(note, text)
    if _HALF.search(text):
        wanted += functions.OF_HALVES.values()
        text = functions.KEPT + text
    declared = set(re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE))
    added = [
        line
        for line in re.split(r"^(?=define |declare )", functions.definitions(wanted), flags=re.M)
        if not (found := re.match(r'declare [^@\n]*@"([\w.]+)"', line)) or found[1] not in declared
    ]
    head = Head(entry["name"], local_bytes, tuple(in_local), takes_range, in_order)
    return head, f"{text}\n{''.join(added)}"


def _without_guards(body: str, parameters: list[str]) -> str:
    """Return an entry's body without its tests whether a work-item is beyond the range.

    The driver runs no such work-items, and the extents help LLVM to bound indices.
    """
    ids = {name for name, _ in _ID.findall(body)}

    def replaced(found: re.Match[str]) -> str:
        if found["id"] not in ids or found["extent"] not in parameters[:3]:
            return found[0]
        name = found["name"]
        return (
            f"  {name}.in = icmp slt i64 {found['id']}, {found['extent']}\n"
            f"  call void @llvm.assume(i1 {name}.in)\n  {name} = and i1 false, false"
        )

    return _BEYOND.sub(replaced, body)


def _with_row_lengths(body: str) -> str:
    """Return an entry's body that does not multiply by lengths of rows as they are passed.

    LLVM would make vectors for rows of one element alone, in which neighbors lie side by side.
    """
    lengths = set(_ROW_LENGTH.findall(body))
    body = _ROW_LENGTH.sub(r"\g<0>.row", body)
    label, _, rest = body.partition("\n")
    added = "".join(
        f"  {name}.row = call i64 @llvm.smax.i64(i64 {name}, i64 0)\n" for name in sorted(lengths)
    )
    return f"{label}\n{added}{rest}"


def _with_local_memory(text: str) -> tuple[str, int]:
    """Return the text with calls for the addresses of local variables, and their total size."""
    places: dict[str, int] = {}
    size = 0
    for found in _LOCAL.finditer(text):
        size = -(-size // _ALIGNMENT) * _ALIGNMENT
        places[found["name"]] = size
        size += size_of(found["kind"].strip())
    if not places:
        return text, 0
    pieces = re.split(r"^(?=define )", _LOCAL.sub("", text), flags=re.MULTILINE)
    for at, piece in enumerate(pieces):
        head = re.match(r"define [^\n]*\{\n(?:\S+:[^\n]*\n)?", piece)
        if head is None:
            continue
        lines = ""
        for number, (name, offset) in enumerate(places.items()):
            own = f"%dparray.local{number}"
            replaced = re.sub(rf"@{re.escape(name)}(?![\w.$])", own, piece)
            if replaced != piece:
                lines += f"  {own} = call ptr @{LOCAL_MEMORY}(i64 {offset})\n"
                piece = replaced
        pieces[at] = piece[: head.end()] + lines + piece[head.end() :]
    return f"{''.join(pieces)}\ndeclare ptr @{LOCAL_MEMORY}(i64) nounwind memory(none)\n", size
