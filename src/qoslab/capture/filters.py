"""Capture filters by libpcap, which dumpcap has them from (pcap-filter(7)): whether they hold, what they compile to.

A filter that names a host has it looked up, so this is for runs, not for reading an experiment.
"""

from __future__ import annotations

import ctypes
from typing import TypeAlias

from qoslab.capture.base import CaptureError

Instruction: TypeAlias = tuple[int, int, int, int]
"""Of a classic Berkeley packet filter: code, jump if true, jump if false, operand."""

LIBRARIES = ("libpcap.so.0.8", "libpcap.so.1")
"""As Debian and Ubuntu call it, and as others do."""
_ETHERNET = 1
"""DLT_EN10MB, the link type of every interface of a lab."""
_SNAPLEN = 262144
_UNKNOWN_NETMASK = 0xFFFFFFFF


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def _library() -> ctypes.CDLL | None:
    for name in LIBRARIES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.pcap_open_dead.restype = ctypes.c_void_p
        found.pcap_geterr.restype = ctypes.c_char_p
        return found
    return None


def _compile(text: str) -> tuple[str, tuple[Instruction, ...]] | None:
    """What libpcap has against a filter, and its program; None where there is no libpcap."""
    library = _library()
    if library is None:
        return None
    if "\0" in text:
        return "it has a null character", ()
    handle = ctypes.c_void_p(library.pcap_open_dead(_ETHERNET, _SNAPLEN))
    program = _Program()
    try:
        if library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, ctypes.c_uint32(_UNKNOWN_NETMASK)):
            return str(library.pcap_geterr(handle).decode(errors="replace")), ()
        found = (program.instructions[number] for number in range(program.length))
        instructions = tuple((each.code, each.jt, each.jf, each.k) for each in found)
        library.pcap_freecode(ctypes.byref(program))
        return "", instructions
    finally:
        library.pcap_close(handle)


def filter_problem(text: str) -> str | None:
    """What libpcap has against a filter, in its own words; empty where it holds, None where there is no libpcap."""
    compiled = _compile(text)
    return None if compiled is None else compiled[0]


def filter_program(text: str) -> tuple[Instruction, ...]:
    """The program of a filter for frames of Ethernet; none for the empty filter, which all frames pass.

    `CaptureError` where it does not hold, or there is no libpcap.
    """
    if not text.strip():
        return ()
    compiled = _compile(text)
    if compiled is None:
        raise CaptureError(f"the filter {text!r} cannot be compiled: libpcap is missing ({' or '.join(LIBRARIES)})")
    problem, program = compiled
    if problem:
        raise CaptureError(f"the filter {text!r} does not hold: {problem}")
    return program
