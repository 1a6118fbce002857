"""Whether capture filters hold, as libpcap says, which dumpcap has them from (pcap-filter(7))."""

from __future__ import annotations

import ctypes

LIBRARIES = ("libpcap.so.0.8", "libpcap.so.1")
"""As Debian and Ubuntu call it, and as others do."""
_ETHERNET = 1
"""DLT_EN10MB, the link type of every interface of a lab."""
_SNAPLEN = 262144
_UNKNOWN_NETMASK = 0xFFFFFFFF


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


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


def filter_problem(text: str) -> str | None:
    """What libpcap has against a filter, in its own words; empty where it holds, None where there is no libpcap.

    A filter that names a host has it looked up, so this is for runs, not for reading an experiment.
    """
    library = _library()
    if library is None:
        return None
    if "\0" in text:
        return "it has a null character"
    handle = ctypes.c_void_p(library.pcap_open_dead(_ETHERNET, _SNAPLEN))
    program = _Program()
    try:
        if library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, ctypes.c_uint32(_UNKNOWN_NETMASK)):
            return str(library.pcap_geterr(handle).decode(errors="replace"))
        library.pcap_freecode(ctypes.byref(program))
        return ""
    finally:
        library.pcap_close(handle)
