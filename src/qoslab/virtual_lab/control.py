"""Client of the data plane's control socket (docs/internals/control-protocol.md), with one JSON object per line."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from qoslab.capture import CaptureCounts
from qoslab.ios.environment import DataPlaneDownError, DataPlaneRefusedError
from qoslab.system import program_formats

if TYPE_CHECKING:
    from qoslab.capture.filters import Instruction

LINE_LIMIT = 4 * 1024 * 1024
"""Greatest length of a line in the protocol, in bytes."""

DEFAULT_TIMEOUT = 5.0
"""Timeout in seconds. The daemon answers within milliseconds, so after this time it is stopped or gone."""

_CREDENTIALS = struct.Struct("=iII")


class ControlClient:
    """Client of one `qos-router`, with one request at a time over one connection.

    The connection is opened for the first request, and again after a failure.
    """

    def __init__(self, path: Path, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.path = path
        self.timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; a later request opens a new one."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()

    async def request(self, op: str, **keys: Any) -> dict[str, Any]:
        """Send one request and return the reply.

        Raise `DataPlaneDownError` if there is no answer, `DataPlaneRefusedError` if the answer is `"ok": false`.
        """
        line = json.dumps({"op": op, **keys}, separators=(",", ":")).encode() + b"\n"
        async with self._lock:
            try:
                async with asyncio.timeout(self.timeout):
                    reply = await self._exchange(line)
            except TimeoutError as error:
                await self.close()
                raise DataPlaneDownError(f"{self.path}: no answer to {op!r} within {self.timeout:g} s") from error
            except (OSError, ValueError) as error:
                await self.close()
                raise DataPlaneDownError(f"{self.path}: {op!r} failed: {error}") from error
            except asyncio.CancelledError:
                # The reply is still pending: the next request must not read it as its own.
                await self.close()
                raise
        if not isinstance(reply, dict) or "ok" not in reply:
            raise DataPlaneDownError(
                f"{self.path}: the answer to {op!r} is not valid in the control protocol: {reply!r:.200}"
            )
        if not reply["ok"]:
            error_body = reply.get("error", {})
            raise DataPlaneRefusedError(
                error_body.get("code", "internal"), error_body.get("message", "no reason given")
            )
        return reply

    async def _exchange(self, line: bytes) -> Any:
        if self._streams is not None and self._streams[0].at_eof():
            await self.close()
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(self.path, limit=LINE_LIMIT)
        reader, writer = self._streams
        writer.write(line)
        await writer.drain()
        answer = await reader.readline()
        if not answer.endswith(b"\n"):
            raise ConnectionResetError("the data plane closed the connection")
        return json.loads(answer)

    async def peer_pid(self) -> int:
        """Return the process id of the daemon, from the socket's credentials (unix(7), SO_PEERCRED)."""
        await self.request("hello")
        if self._streams is None:
            raise DataPlaneDownError(f"{self.path}: the data plane closed the connection")
        connection: socket.socket = self._streams[1].get_extra_info("socket")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid: int = _CREDENTIALS.unpack(credentials)[0]
        return pid

    async def hello(self) -> dict[str, Any]:
        """Return program, version, format and router name."""
        return await self.request("hello")

    async def configure(self, config: program_formats.DataPlaneConfig) -> None:
        """Activate a complete configuration, or none of it."""
        await self.request("configure", config=config)

    async def config(self) -> program_formats.DataPlaneConfig | None:
        """Return the active configuration as it was given; None before the first."""
        return cast("program_formats.DataPlaneConfig | None", (await self.request("config"))["config"])

    async def resolve(self) -> dict[str, program_formats.ResolvedPolicy]:
        """Return the active policy-maps with their defaults filled in."""
        return cast("program_formats.Resolved", await self.request("resolve"))["policy_maps"]

    async def counters(self, interface: str | None = None) -> program_formats.Counters:
        """Return all counters, or those of one interface."""
        keys = {} if interface is None else {"interface": interface}
        return cast("program_formats.Counters", await self.request("counters", **keys))

    async def clear(self, interface: str | None = None) -> None:
        """Zero the counters of all interfaces, or of one."""
        keys = {} if interface is None else {"interface": interface}
        await self.request("clear", **keys)

    async def ip_sla(self, operation: int | None = None, *, samples: bool = False) -> program_formats.IpSlaReport:
        """Return the results of IP SLA, for one operation or all; with `samples`, also each packet's time stamps."""
        keys = {} if operation is None else {"operation": operation}
        return cast("program_formats.IpSlaReport", await self.request("ip_sla", samples=samples, **keys))

    async def capture(
        self, interface: str, file: Path, *, snaplen: int, filter: Sequence[Instruction] = (), comment: str
    ) -> None:
        """Start to capture the packets of an interface into a pcapng file, with event time as time stamps.

        `filter` is a program from `qoslab.capture.filters.filter_program`; `snaplen` is the number of saved bytes per
        frame.
        """
        await self.request(
            "capture", interface=interface, file=str(file), snaplen=snaplen, filter=filter, comment=comment
        )

    async def end_capture(self, file: Path) -> CaptureCounts:
        """End the capture into this file, which is then complete."""
        reply = await self.request("end_capture", file=str(file))
        return CaptureCounts(received=reply["received"], dropped=reply["dropped"])

    async def health(self) -> program_formats.Health:
        """Return lateness and lost input."""
        return cast("program_formats.Health", await self.request("health"))
