"""The instructions of PTX, prepared as functions of the lanes that execute them.

A prepared instruction takes the lanes, an array of numbers or ``slice(None)``, and its position. It
returns True if it has set the positions of these lanes itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.cuda import ptx_arithmetic as arithmetic
from tests.cuda import ptx_memory
from tests.cuda.ptx_text import TYPES, EmulationError, Function, Instruction, raw

if TYPE_CHECKING:
    from tests.cuda.ptx_emulator import Run

Step = Callable[[Any, int], Any]
_ENDING = {"bra", "brx", "ret", "exit", "call", "bar", "barrier", "shfl", "trap"}
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)U?$")
_WORD = np.dtype("u4")


def prepared(run: Run) -> list[tuple[Step, bool]]:
    """Return each instruction, and whether lanes may be elsewhere after it."""
    found: list[tuple[Step, bool]] = []
    targets = set(run.code.labels.values())
    reader: Frame | None = None
    for at, (function, code) in enumerate(run.code.instructions):
        if reader is None or reader.function is not function:
            reader = Frame(run, function)
        is_last = code.opcode[0] in _ENDING or at + 1 in targets
        found.append((reader.prepared(code), is_last))
    return found


class Frame:
    """The registers and names of a function, for its instructions."""

    def __init__(self, run: Run, function: Function) -> None:
        self.run, self.function = run, function
        self.registers = run.registers[function.name]
        #: The slot behind the name of a call's result.
        self.results: dict[str, str] = {}

    # -- operands ----------------------------------------------------------------------------------

    def read(self, operand: str, dtype: np.dtype) -> Callable[[Any], np.ndarray]:
        """Return a function of lanes that returns the values of an operand."""
        if operand in self.registers or operand in self.run.special:
            values = self.registers.get(operand, self.run.special.get(operand))
            assert values is not None
            if values.dtype.itemsize == dtype.itemsize:
                seen = values.view(dtype)
                return lambda who: seen[who]
            return lambda who: values[who].astype(raw(dtype)).view(dtype)
        whole = np.broadcast_to(self._constant(operand, dtype), self.run.count)
        return lambda who: whole[who]

    def _constant(self, operand: str, dtype: np.dtype) -> np.ndarray:
        if operand[:2] in ("0f", "0F"):
            return _resized(np.uint32(int(operand[2:], 16)), np.dtype("f4"), dtype)
        if operand[:2] in ("0d", "0D"):
            return _resized(np.uint64(int(operand[2:], 16)), np.dtype("f8"), dtype)
        if _NUMBER.match(operand):
            number = int(operand.rstrip("U"), 0)
        elif operand in self.run.addresses:
            number = self.run.addresses[operand]
        else:
            raise EmulationError(f"unknown operand {operand}")
        if dtype.kind == "b":
            return np.array(number != 0)
        return np.array(number & ((1 << 8 * dtype.itemsize) - 1), raw(dtype)).view(dtype)

    def write(self, register: str, who: Any, values: np.ndarray) -> None:
        """Set a register; smaller integers are extended by their sign or zeros."""
        if register == "_":
            return
        target = self.registers[register]
        if values.dtype.kind == "f" or values.dtype.itemsize == target.dtype.itemsize:
            values = np.ascontiguousarray(values).view(raw(values.dtype))
        target[who] = values.astype(target.dtype)

    # -- preparation -------------------------------------------------------------------------------

    def prepared(self, code: Instruction) -> Step:
        """Return an instruction, limited to the lanes whose predicate holds."""
        make = getattr(self, f"_{code.opcode[0]}", None)
        step: Step = make(code) if make else ptx_memory.prepared(self, code) or self._compute(code)
        if not code.guard:
            return step
        flags, negated = self.registers[code.guard], code.negated

        def guarded(who: Any, at: int) -> Any:
            chosen = np.flatnonzero(flags ^ negated) if isinstance(who, slice) else None
            if chosen is None:
                chosen = who[flags[who] ^ negated]
            if not chosen.size:
                return None
            has_moved = step(chosen, at)
            if has_moved:  # the other lanes go on behind it
                others = np.setdiff1d(np.arange(self.run.count)[who], chosen)
                self.run.positions[others] = at + 1
            return has_moved

        return guarded

    # -- control flow ------------------------------------------------------------------------------

    def _bra(self, code: Instruction) -> Step:
        target = self.run.code.labels[self.function.name, code.operands[0]]

        def jump(who: Any, at: int) -> bool:
            self.run.positions[who] = target
            return True

        return jump

    def _brx(self, code: Instruction) -> Step:
        names = self.function.tables[code.operands[1]]
        targets = np.array([self.run.code.labels[self.function.name, each] for each in names])
        index = self.read(code.operands[0], _WORD)

        def jump(who: Any, at: int) -> bool:
            self.run.positions[who] = targets[index(who)]
            return True

        return jump

    def _ret(self, code: Instruction) -> Step:
        run, end = self.run, len(self.run.code.instructions)
        is_kernel = self.function is run.code.functions[0]
        returns = run.returns[self.function.name]

        def leave(who: Any, at: int) -> bool:
            run.positions[who] = end if is_kernel or code.opcode[0] == "exit" else returns[who]
            return True

        return leave

    _exit = _ret

    def _trap(self, code: Instruction) -> Step:
        def trap(who: Any, at: int) -> None:
            raise EmulationError("trap")

        return trap

    def _call(self, code: Instruction) -> Step:
        """Call a function: copy the parameters, and return behind the call."""
        operands = list(code.operands)
        result = operands.pop(0).strip("()") if operands[0].startswith("(") else ""
        name, *rest = operands
        listed = rest[0].strip("()").split(",") if rest else []
        given = [each for each in map(str.strip, listed) if each]
        run = self.run
        if name == "vprintf":
            self.results[result] = result

            def print_texts(who: Any, at: int) -> None:
                lanes = np.arange(run.count)[who]
                ptx_memory.print_lanes(run, lanes, *(run.slots[each][0] for each in given))
                run.slots[result] = {0: np.zeros(run.count, np.uint32)}

            return print_texts
        called = run.module.functions.get(name)
        if called is None:
            raise EmulationError(f"a call of {name}, which has no body")
        self.results[result] = called.result
        start = run.code.starts[name]

        def call(who: Any, at: int) -> bool:
            for own, slot in zip(called.parameters, given, strict=True):
                kept = run.slots.setdefault(own, {})
                for offset, values in run.slots[slot].items():
                    kept.setdefault(offset, np.zeros_like(values))[who] = values[who]
            run.returns[name][who] = at + 1
            run.positions[who] = start
            return True

        return call

    def _nothing(self, code: Instruction) -> Step:
        return lambda who, at: None

    def _fence(self, code: Instruction) -> Step:
        def order(who: Any, at: int) -> None:
            if self.run.late is not None:
                self.run.late.release(self.run, who)

        return order

    _membar = _fence

    # -- exchanges ---------------------------------------------------------------------------------

    def _bar(self, code: Instruction) -> Step:
        state = 2 if code.opcode[1] == "warp" else 1  # WAITS_FOR_WARP, WAITS_FOR_BLOCK

        def wait(who: Any, at: int) -> bool:
            if self.run.late is not None and state == 1:
                self.run.late.arrive(self.run, who)
            self.run.states[who] = state
            self.run.positions[who] = at
            return True

        return wait

    _barrier = _bar

    def _shfl(self, code: Instruction) -> Step:
        def wait(who: Any, at: int) -> bool:
            run = self.run
            run.positions[who] = at
            here = np.zeros(run.count, bool)
            here[who] = True
            if _is_complete(self, code, here)[who].all():
                _shuffle(self, code, np.flatnonzero(here))
                return False
            run.states[who] = 2  # WAITS_FOR_WARP
            return True

        return wait

    # -- values ------------------------------------------------------------------------------------

    def _mov(self, code: Instruction) -> Step:
        """Move a value, or split a word into parts, or join parts to a word."""
        target, source = code.operands
        dtype = raw(code.dtype)
        if not target.startswith("{") and not source.startswith("{"):
            value = self.read(source, dtype)
            return lambda who, at: self.write(target, who, value(who))
        names = [each.strip() for each in (target + source).partition("{")[2][:-1].split(",")]
        names = [each.partition("}")[0] for each in names]
        part = np.dtype(f"u{dtype.itemsize // len(names)}")
        bits = 8 * part.itemsize
        if target.startswith("{"):
            value = self.read(source, dtype)

            def split(who: Any, at: int) -> None:
                whole = value(who)
                for place, name in enumerate(names):
                    self.write(name, who, (whole >> dtype.type(bits * place)).astype(part))

            return split
        parts = [self.read(each, part) for each in names]

        def join(who: Any, at: int) -> None:
            whole = np.zeros(parts[0](who).shape, dtype)
            for place, read in enumerate(parts):
                whole |= read(who).astype(dtype) << dtype.type(bits * place)
            self.write(target, who, whole)

        return join

    def _selp(self, code: Instruction) -> Step:
        dtype = raw(code.dtype)
        a, b = (self.read(each, dtype) for each in code.operands[1:3])
        flag = self.read(code.operands[3], np.dtype(bool))
        target = code.operands[0]
        return lambda who, at: self.write(target, who, np.where(flag(who), a(who), b(who)))

    def _setp(self, code: Instruction) -> Step:
        how, kind = code.opcode[1], code.opcode[-1]
        a, b = (self.read(each, code.dtype) for each in code.operands[1:3])
        targets = code.operands[0].split("|")
        logic = next((each for each in code.opcode[2:] if each in arithmetic.LOGIC), "")
        third = code.operands[3] if logic else ""
        other = self.read(third.lstrip("!"), np.dtype(bool)) if logic else None

        def compare(who: Any, at: int) -> None:
            if kind == "f16x2":
                first, second = (_halves(read(who)) for read in (a, b))
                found = arithmetic.compared(how, first, second)
                for lane, target in enumerate(targets):
                    self.write(target, who, found[:, lane])
                return
            result = arithmetic.compared(how, a(who), b(who))
            if other is not None:
                result = arithmetic.LOGIC[logic](result, other(who) ^ third.startswith("!"))
            self.write(targets[0], who, result)

        return compare

    def _cvt(self, code: Instruction) -> Step:
        *modes, to, source = code.opcode[1:]
        value, target = self.read(code.operands[1], TYPES[source]), TYPES[to]
        register = code.operands[0]

        def convert(who: Any, at: int) -> None:
            self.write(register, who, arithmetic.converted(value(who), target, modes))

        return convert

    def _compute(self, code: Instruction) -> Step:
        """Prepare an arithmetic instruction."""
        name, *modes, kind = code.opcode
        if name in ("addc", "subc", "madc") or "cc" in modes:
            return self._compute_with_carry(code)
        if kind not in TYPES:
            raise EmulationError(f"unknown instruction {code.text}")
        is_pair = kind == "f16x2"
        dtype = np.dtype("f2") if is_pair else TYPES[kind]
        function = arithmetic.function_of(name, modes, dtype)
        kinds = [_WORD if is_pair else dtype] * (len(code.operands) - 1)
        if name in ("shl", "shr", "shf", "bfe"):  # amounts
            kinds[-1:] = [_WORD]
            kinds[1:] = [_WORD] * len(kinds[1:])
        if name == "mad" and "wide" in modes:
            kinds[2] = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        reads = [self.read(each, one) for each, one in zip(code.operands[1:], kinds, strict=True)]
        target = code.operands[0]
        is_flushed = "ftz" in modes and dtype == np.float32

        def compute(who: Any, at: int) -> None:
            values = [read(who) for read in reads]
            if is_pair:
                pairs = function(*map(_halves, values)).astype("f2")
                self.write(target, who, np.ascontiguousarray(pairs).view("u4")[:, 0])
                return
            if is_flushed:
                values = [arithmetic.flushed(each) for each in values]
            found = function(*values)
            if is_flushed:
                found = arithmetic.flushed(found)
            self.write(target, who, arithmetic.saturated(found) if "sat" in modes else found)

        return compute

    def _compute_with_carry(self, code: Instruction) -> Step:
        """Prepare an addition, subtraction or product that reads or sets the carry flag."""
        name, *modes, kind = code.opcode
        dtype = TYPES[kind]
        reads = [self.read(each, raw(dtype)) for each in code.operands[1:]]
        carry, target = self.run.carry, code.operands[0]
        takes = name in ("addc", "subc", "madc")

        def compute(who: Any, at: int) -> None:
            values = [read(who) for read in reads]
            flag = (carry[who] if takes else np.zeros(values[0].shape, bool)).astype(raw(dtype))
            if name.startswith("mad"):
                x, y, added = values
                high = arithmetic.high_product(x.view(dtype), y.view(dtype)).view(raw(dtype))
                values = [high if "hi" in modes else x * y, added]
            a, b = values
            if name.startswith("sub"):
                found, flag_out = a - b - flag, (a < b) | ((a == b) & (flag == 1))
            else:
                found = a + b + flag
                flag_out = (found < a) | ((found == a) & (flag == 1))
            if "cc" in modes:
                carry[who] = flag_out
            self.write(target, who, found)

        return compute


def _halves(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words).view("f2").reshape(-1, 2)


def _resized(bits: Any, own: np.dtype, dtype: np.dtype) -> np.ndarray:
    """Return a float literal in a type: its bits, or its value in a float of another size."""
    if own.itemsize == dtype.itemsize:
        return np.array(bits).view(dtype)
    return np.array(bits).view(own).astype(dtype)


# --- exchanges of warps ---------------------------------------------------------------------------


def exchange_waiting(run: Run) -> bool:
    """Execute exchanges for which all lanes of the mask have arrived; return whether any did."""
    has_moved = False
    for at in np.unique(run.positions[run.states == 2]):
        here = (run.states == 2) & (run.positions == at)
        function, code = run.code.instructions[at]
        frame = Frame(run, function)
        who = np.flatnonzero(_is_complete(frame, code, here))
        if who.size:
            if code.opcode[0] == "shfl":
                _shuffle(frame, code, who)
            run.positions[who] += 1
            run.states[who] = 0
            has_moved = True
    return has_moved


def _bits_of_warps(run: Run, flags: np.ndarray) -> np.ndarray:
    """Return flags of lanes as a word for each warp."""
    bits = flags[np.maximum(run.warps, 0)] & (run.warps >= 0)
    return (bits.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1)


def _is_complete(frame: Frame, code: Instruction, here: np.ndarray) -> np.ndarray:
    """Return which lanes are at an exchange, with all others of their mask that have not ended."""
    run = frame.run
    operand = code.operands[-1 if code.opcode[0] == "shfl" else 0]
    mask = frame.read(operand, _WORD)(slice(None)).astype(np.uint64)
    missing = (_bits_of_warps(run, run.is_alive()) & ~_bits_of_warps(run, here))[run.warp_of]
    return here & (mask & missing == 0)


def _shuffle(frame: Frame, code: Instruction, who: np.ndarray) -> None:
    """Execute ``shfl.sync``; a lane out of range, or that has ended, gives the own value."""
    run, mode, dtype = frame.run, code.opcode[2], raw(code.dtype)
    targets = code.operands[0].split("|")
    value = frame.read(code.operands[1], dtype)(slice(None))
    b, clamp = (frame.read(each, _WORD)(who).astype(int) for each in code.operands[2:4])
    lane, b = run.lane_in_warp[who], b & 31
    segment = (clamp >> 8) & 31
    first, last = lane & segment, (lane & segment) | (clamp & 31 & ~segment)
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment)}[
        mode
    ]
    is_valid = source >= last if mode == "up" else source <= last
    places = run.warps[run.warp_of[who], np.where(is_valid, source, lane)]
    has_ended = (places < 0) | ~run.is_alive()[np.maximum(places, 0)]
    frame.write(targets[0], who, value[np.where(has_ended, who, places)])
    if len(targets) > 1:
        frame.write(targets[1], who, is_valid)
