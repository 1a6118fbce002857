"""Telnet protocol without IO: text from received bytes, and required answers (RFC 854, 855, 857, 858).

The only supported options are echo and suppress-go-ahead. Any other option proposed by the other end is refused.
"""

from __future__ import annotations

ECHO, SUPPRESS_GO_AHEAD = 1, 3
"""Options (RFC 857, RFC 858)."""

SE, SB, WILL, WONT, DO, DONT, IAC = 240, 250, 251, 252, 253, 254, 255
"""Commands (RFC 854)."""

_CR, _LF, _NUL = b"\r", b"\n", b"\0"


class TelnetConnection:
    """One end of a connection."""

    def __init__(self, *, performs: frozenset[int] = frozenset(), accepts: frozenset[int] = frozenset()) -> None:
        """Set the options that this end may perform (`performs`), and that it lets the other end perform
        (`accepts`).
        """
        self._performs = performs
        self._accepts = accepts
        self._mine: set[int] = set()
        self._theirs: set[int] = set()
        self._rest = b""
        """Beginning of an incomplete command."""
        self._after_cr = False

    @classmethod
    def server(cls) -> TelnetConnection:
        """Return the end of a device, which echoes."""
        both = frozenset({ECHO, SUPPRESS_GO_AHEAD})
        return cls(performs=both, accepts=frozenset({SUPPRESS_GO_AHEAD}))

    @classmethod
    def client(cls) -> TelnetConnection:
        """Return the end of a client that logs in."""
        both = frozenset({ECHO, SUPPRESS_GO_AHEAD})
        return cls(performs=frozenset({SUPPRESS_GO_AHEAD}), accepts=both)

    def initial_options(self) -> bytes:
        """Return the first options of a server."""
        self._mine |= self._performs
        return b"".join(bytes((IAC, WILL, option)) for option in sorted(self._performs))

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """Process received bytes, split at any position; return the text in them and the bytes to answer."""
        data, self._rest = self._rest + data, b""
        text, answer = bytearray(), bytearray()
        at = 0
        while at < len(data):
            if data[at] != IAC:
                text.append(data[at])
                at += 1
                continue
            end = _command_end(data, at)
            if end is None:
                # Parameters are not examined, so only the ends of an endless list are kept.
                self._rest = data[at:] if len(data) - at < 4 else data[at : at + 2] + data[-1:]
                break
            if data[at + 1] == IAC:
                text.append(IAC)
            elif WILL <= data[at + 1] <= DONT:
                answer += self._negotiate(data[at + 1], data[at + 2])
            at = end
        return self._strip_padding(bytes(text)), bytes(answer)

    def send(self, text: bytes) -> bytes:
        """Encode text for the line: a lone CR is followed by NUL, the byte 255 is doubled."""
        whole = text.replace(b"\r\n", _LF).replace(_CR, _CR + _NUL).replace(_LF, b"\r\n")
        return whole.replace(bytes((IAC,)), bytes((IAC, IAC)))

    def _negotiate(self, command: int, option: int) -> bytes:
        """Answer only changes and refusals: otherwise two ends would confirm endlessly (RFC 854, page 3)."""
        if command in (DO, DONT):
            enabled, allowed, yes, no = self._mine, self._performs, WILL, WONT
        else:
            enabled, allowed, yes, no = self._theirs, self._accepts, DO, DONT
        if command in (DO, WILL):
            if option in enabled:
                return b""
            if option not in allowed:
                return bytes((IAC, no, option))
            enabled.add(option)
            return bytes((IAC, yes, option))
        if option not in enabled:
            return b""
        enabled.discard(option)
        return bytes((IAC, no, option))

    def _strip_padding(self, text: bytes) -> bytes:
        """Convert CR NUL to a lone CR, even if they arrive separately."""
        if self._after_cr and text.startswith(_NUL):
            text = text[1:]
            self._after_cr = False
        if text:
            self._after_cr = text.endswith(_CR)
        return text.replace(_CR + _NUL, _CR)


def _command_end(data: bytes, at: int) -> int | None:
    """Return the end of the command that begins at `at`; None if it is incomplete."""
    if at + 1 >= len(data):
        return None
    if data[at + 1] == SB:
        # Parameters of an option that was not negotiated.
        end = data.find(bytes((IAC, SE)), at + 2)
        return None if end < 0 else end + 2
    length = 3 if WILL <= data[at + 1] <= DONT else 2
    return None if at + length > len(data) else at + length
