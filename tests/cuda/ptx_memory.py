"""The instructions of PTX that access memory, parameters and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.cuda.ptx_text import TYPES, EmulationError, Instruction, raw

if TYPE_CHECKING:
    from tests.cuda.ptx_emulator import Run
    from tests.cuda.ptx_instructions import Frame

# Generic addresses of local and shared memory begin here.
_WINDOWS = {"local": 1 << 56, "shared": 1 << 57}
_OFFSET = re.compile(r"\[\s*([^+\s\]]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": lambda old, limit: np.where(old >= limit, 0, old + 1),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - 1),
}
_ADDRESS = np.dtype("u8")


def prepared(frame: Frame, code: Instruction) -> Callable[[Any, int], Any] | None:
    """Return an instruction, or None if it accesses no memory."""
    makers = {"ld": _load, "ldu": _load, "st": _store, "atom": _update, "red": _update}
    make = makers.get(code.opcode[0], _convert if code.opcode[0] == "cvta" else None)
    return make(frame, code) if make else None


# --- places ---------------------------------------------------------------------------------------


def _address(frame: Frame, operand: str) -> Callable[[Any], np.ndarray]:
    found = _OFFSET.match(operand)
    if found is None:
        raise EmulationError(f"an unknown address {operand}")
    base = frame.read(found[1], _ADDRESS)
    offset = np.uint64(int(found[2] or "0", 0) & ((1 << 64) - 1))
    return lambda who: base(who) + offset


def _place(
    run: Run, space: str, addresses: np.ndarray, who: Any, nbytes: int, *, writes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer, and positions in it in bytes.

    Raises:
        EmulationError: misaligned, or outside of every array.
    """
    if not space:
        number = np.unique(addresses >> np.uint64(56))
        if number.size > 1:
            raise EmulationError("a generic access to several address spaces together")
        space = {0: "global", 1: "local", 2: "shared"}.get(int(number[0]), "")
        addresses = addresses & np.uint64(_WINDOWS["local"] - 1)
    if (wrong := addresses[addresses % np.uint64(nbytes) != 0]).size:
        raise EmulationError(f"a misaligned access of {nbytes} bytes at {int(wrong[0]):#x}")
    if space in ("global", "const"):
        run.memory.check(addresses, nbytes)
        places = addresses - np.uint64(run.memory.start)
        if run.memory.written is not None:
            run.memory.note(places, nbytes, writes)
        return run.memory.bytes, places
    if space == "param":
        if (addresses + np.uint64(nbytes) > run.parameters.size).any():
            raise EmulationError("an access to parameters beyond their end")
        return run.parameters, addresses
    end, size = {
        "shared": (run.shared_end, run.shared_size),
        "local": (run.local_size, run.local_size),
    }[space]
    if (wrong := addresses[addresses + np.uint64(nbytes) > end]).size:
        raise EmulationError(
            f"an access to {space} memory at {int(wrong[0])}, which has {end} bytes"
        )
    number = run.block_of if space == "shared" else np.arange(run.count)
    return getattr(run, space), addresses + (number[who] * size).astype("u8")


def _elements(
    run: Run,
    code: Instruction,
    addresses: np.ndarray,
    who: Any,
    count: int = 1,
    *,
    writes: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return memory as elements of the instruction's type, and positions in it."""
    itemsize = code.dtype.itemsize
    buffer, at = _place(run, code.space, addresses, who, itemsize * count, writes=writes)
    return buffer.view(raw(code.dtype)), at // np.uint64(itemsize)


def _convert(frame: Frame, code: Instruction) -> Callable[[Any, int], Any]:
    """Prepare ``cvta``: to or from generic addresses."""
    space = next(each for each in code.opcode if each in ("global", "shared", "local", "const"))
    window = np.uint64(_WINDOWS.get(space, 0))
    target, source = code.operands
    value = frame.read(source, _ADDRESS)
    if "to" in code.opcode:
        return lambda who, at: frame.write(target, who, value(who) - window)
    return lambda who, at: frame.write(target, who, value(who) + window)


# --- loads and stores -----------------------------------------------------------------------------


def _names(operand: str) -> list[str]:
    return [each.strip() for each in operand.strip("{}").split(",")]


def _slot(operand: str) -> tuple[str, int]:
    found = _OFFSET.match(operand)
    assert found is not None
    return found[1], int(found[2] or "0", 0)


def _load(frame: Frame, code: Instruction) -> Callable[[Any, int], Any]:
    run, dtype, targets = frame.run, code.dtype, _names(code.operands[0])
    name, first = _slot(code.operands[1])
    if code.space == "param" and name not in run.addresses and name not in frame.registers:
        name = frame.results.get(name, name)

        def receive(who: Any, at: int) -> None:
            for lane, target in enumerate(targets):
                values = run.slots[name][first + lane * dtype.itemsize][who]
                values = np.ascontiguousarray(values).view(raw(values.dtype))
                frame.write(target, who, values.astype(raw(dtype)).view(dtype))

        return receive
    address = _address(frame, code.operands[1])

    def load(who: Any, at: int) -> None:
        memory, places = _elements(run, code, address(who), who, len(targets))
        for lane, target in enumerate(targets):
            values = memory[places + np.uint64(lane)]
            if run.late is not None and code.space == "global":
                octets = (places + np.uint64(lane)) * np.uint64(dtype.itemsize)
                values = run.late.seen(run, who, octets, values)
            frame.write(target, who, values.view(dtype) if dtype.kind == "i" else values)

    return load


def _store(frame: Frame, code: Instruction) -> Callable[[Any, int], Any]:
    run, dtype = frame.run, raw(code.dtype)
    values = [frame.read(each, dtype) for each in _names(code.operands[1])]
    if code.space == "param":
        name, first = _slot(code.operands[0])

        def pass_on(who: Any, at: int) -> None:
            slot = run.slots.setdefault(name, {})
            for lane, value in enumerate(values):
                place = first + lane * dtype.itemsize
                if place not in slot or slot[place].dtype != dtype:
                    slot[place] = np.zeros(run.count, dtype)
                slot[place][who] = value(who)

        return pass_on
    address = _address(frame, code.operands[0])

    def store(who: Any, at: int) -> None:
        memory, places = _elements(run, code, address(who), who, len(values), writes=True)
        is_late = run.late is not None and code.space == "global"
        if is_late and "release" in code.opcode:
            run.late.release(run, who)
        for lane, value in enumerate(values):
            if is_late:
                octets = (places + np.uint64(lane)) * np.uint64(dtype.itemsize)
                run.late.store(run, who, octets, value(who))
            else:
                memory[places + np.uint64(lane)] = value(who)

    return store


# --- atomics --------------------------------------------------------------------------------------


def _update(frame: Frame, code: Instruction) -> Callable[[Any, int], Any]:
    """Prepare ``atom`` and ``red``: lanes with one address take turns."""
    run, dtype = frame.run, code.dtype
    name = next(each for each in code.opcode if each in _UPDATES or each == "cas")
    target, *rest = ("_", *code.operands) if code.opcode[0] == "red" else code.operands
    address = _address(frame, rest[0])
    values = [frame.read(each, dtype) for each in rest[1:]]

    def update(who: Any, at: int) -> None:
        memory, places = _elements(run, code, address(who), who)
        if run.late is not None and code.space == "global":
            if {"release", "acq_rel"} & set(code.opcode):
                run.late.release(run, who)
            run.late.settle(run, who, places * np.uint64(dtype.itemsize))
        memory = memory.view(dtype)
        given = [read(who) for read in values]
        before = np.empty(places.size, dtype)
        for turn in _turns(places):
            old = memory[places[turn]]
            before[turn] = old
            if name == "cas":
                new = np.where(_same(old, given[0][turn]), given[1][turn], old)
            else:
                new = _UPDATES[name](old, given[0][turn])
            memory[places[turn]] = new.astype(dtype)
        frame.write(target, who, before)

    return update


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.view(raw(a.dtype)) == b.view(raw(b.dtype))


def _turns(places: np.ndarray) -> list[np.ndarray]:
    """Return the first lanes of all places, the second lanes, ..."""
    order = np.argsort(places, kind="stable")
    ordered, numbers = places[order], np.arange(places.size)
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    rank = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


# --- printing -------------------------------------------------------------------------------------

_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?l*[a-zA-Z%]")


def _text_at(run: Run, address: int, lane: int) -> str:
    found = b""
    while (one := _bytes_at(run, address + len(found), lane, 1)) != b"\0":
        found += one
    return found.decode()


def _bytes_at(run: Run, address: int, lane: int, nbytes: int) -> bytes:
    addresses = np.array([address], np.uint64)
    buffer, at = _place(run, "", addresses, np.array([lane]), nbytes)
    return bytes(buffer[int(at[0]) : int(at[0]) + nbytes])


def print_lanes(run: Run, lanes: Any, formats: np.ndarray, buffers: np.ndarray) -> None:
    """Print as ``vprintf``: values follow each other in a buffer, each aligned to its size."""
    for lane in lanes:
        place = int(buffers[lane])

        def value(found: re.Match[str], lane: int = lane) -> str:
            nonlocal place
            form, letter = found[0].replace("l", ""), found[0][-1]
            if letter == "%":
                return "%"
            nbytes = 4 if letter in "diuxXoc" and "l" not in found[0] else 8
            place = -(-place // nbytes) * nbytes
            bits = _bytes_at(run, place, lane, nbytes)
            place += nbytes
            if letter in "fFeEgG":
                return form % np.frombuffer(bits, TYPES["f64"])[0]
            number = int.from_bytes(bits, "little", signed=letter in "dic")
            if letter == "s":
                return form % _text_at(run, number, lane)
            return form.replace("u", "d") % number

        text = _text_at(run, int(formats[lane]), lane)
        run.module.printed.append(_CONVERSION.sub(value, text))
