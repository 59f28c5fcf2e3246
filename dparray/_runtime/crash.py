"""The message of a process that a kernel ends by a segmentation fault, as faulthandler's is.

A kernel on a CPU device is native code in this process, so an index far out of bounds ends it. In
the handler of that signal nothing of Python, C's library or a lock may be used; what is here makes
system calls: it writes a text that is ready, and goes on to the handler that was there before (the
driver's, faulthandler's), or lets the process end as it would have. Work-items run in threads, and
several may fault at once: the first tells, and the others wait for a second, so that the process
does not end while a handler still writes.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import struct
import sys

_TEXT = (
    b"\ndparray: segmentation fault in a process that has launched kernels. If one of them reads "
    b"or writes outside of its arrays, this finds the line: run the program again with "
    b"DPARRAY_DEBUG=1 (or dp.config.debug = True); dp.simulate(kernel, range, *arguments) finds "
    b"races as well.\n"
)
_WITH_INFO, _ON_OTHER_STACK = 4, 0x08000000  # of sigaction's flags

#: Machine code, the text, and what the code reads: they live as long as the process.
_code: list[mmap.mmap] = []


class _State(ctypes.Structure):
    """The state of all handlers: whether one has run, how long others wait, the usual action."""

    _fields_ = (
        ("has_run", ctypes.c_int64),
        ("wait", ctypes.c_int64 * 2),  # a struct timespec
        ("usual", ctypes.c_int64 * 4),  # the system's own struct sigaction, of SIG_DFL
    )


_state = _State(wait=(1, 0))


class _Action(ctypes.Structure):
    """``struct sigaction`` of 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def explain_faults() -> None:
    """Let a segmentation fault name the ways to find its line; once for a process.

    It stays away where the machine is another than it is written for, or the system refuses it.
    """
    if _code or sys.platform != "linux" or platform.machine() != "x86_64":
        return
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    except (OSError, ValueError):
        return
    _code.append(page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    library = ctypes.CDLL(None)
    text = mmap.PAGESIZE - len(_TEXT)
    page[text:] = _TEXT
    handlers = {}
    for signum in (signal.SIGSEGV, signal.SIGBUS):
        before = _Action()
        library.sigaction(signum, None, ctypes.byref(before))
        handlers[signum] = start + page.tell()
        page.write(_handler(start + text, before.handler))
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    if library.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(mmap.PAGESIZE), executable):
        return  # a system that forbids programs to make code
    flags = ctypes.c_int(_WITH_INFO | _ON_OTHER_STACK).value
    for signum, handler in handlers.items():
        now = _Action(handler=handler, flags=flags)
        library.sigaction(signum, ctypes.byref(now), None)


def _handler(text: int, before: int | None) -> bytes:
    """A signal handler for x86-64: write the text to the error stream, then what was there."""
    state = ctypes.addressof(_state)
    wait, usual = state + _State.wait.offset, state + _State.usual.offset
    end = (  # edi holds the signal, whose action becomes the usual one and which is sent once more
        b"\x57"  # push rdi
        + struct.pack("<2sQ", b"\x48\xbe", usual)  # mov rsi, the usual action
        + b"\x31\xd2"  # xor edx, edx
        + b"\x41\xba\x08\x00\x00\x00"  # mov r10d, 8 (the bytes of a signal mask)
        + b"\xb8\x0d\x00\x00\x00\x0f\x05"  # mov eax, 13 (rt_sigaction); syscall
        + b"\xb8\x27\x00\x00\x00\x0f\x05"  # mov eax, 39 (getpid); syscall
        + b"\x89\xc7\x5e"  # mov edi, eax; pop rsi
        + b"\xb8\x3e\x00\x00\x00\x0f\x05"  # mov eax, 62 (kill); syscall
        + b"\xc3"  # ret
    )
    later = (
        b"\x57"  # push rdi
        + struct.pack("<2sQ", b"\x48\xbf", wait)  # mov rdi, the time
        + b"\x31\xf6"  # xor esi, esi
        + b"\xb8\x23\x00\x00\x00\x0f\x05"  # mov eax, 35 (nanosleep); syscall
        + b"\x5f"  # pop rdi
        + end
    )
    first = (
        b"\x57\x56\x52"  # push rdi, rsi, rdx
        b"\xb8\x01\x00\x00\x00"  # mov eax, 1 (write)
        b"\xbf\x02\x00\x00\x00"  # mov edi, 2 (the error stream)
        + struct.pack("<2sQ", b"\x48\xbe", text)  # mov rsi, text
        + struct.pack("<cI", b"\xba", len(_TEXT))  # mov edx, its length
        + b"\x0f\x05"  # syscall
        b"\x5a\x5e\x5f"  # pop rdx, rsi, rdi
    )
    return (
        b"\xf3\x0f\x1e\xfa"  # endbr64
        + struct.pack("<2sQ", b"\x48\xb9", state)  # mov rcx, state
        + b"\xb8\x01\x00\x00\x00"  # mov eax, 1
        + b"\x87\x01"  # xchg [rcx], eax
        + b"\x85\xc0"  # test eax, eax
        + struct.pack("<2si", b"\x0f\x84", len(later))  # jz first
        + later
        + first
        + (
            end
            if before in (None, signal.SIG_IGN)
            else struct.pack("<2sQ2s", b"\x48\xb8", before, b"\xff\xe0")  # jump there
        )
    )
