"""Packets of captures as Arrow tables in pieces, read by the program `qos-pcap` (docs/reference/captures.md).

It reads pcap and pcapng, optionally compressed by gzip, of Ethernet, PPP, HDLC and IP.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import subprocess
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.capture import CaptureError
from qoslab.system.programs import find_own_program

PROGRAM = "qos-pcap"
FORMAT = 1
TCP, UDP = 6, 17
PIECE = 65_536
"""Packets per piece: while one piece is processed, the next one is read."""
PIPE_BYTES = 1 << 20
"""Size of the pipe from the reader; the limit for an ordinary user (`/proc/sys/fs/pipe-max-size`)."""
PAYLOAD_BYTES = 64
"""Bytes after the IP header by which packets are recognised; captures of runs contain at least this many."""

SCHEMA = pa.schema(
    {
        "time_ns": pa.int64(),  # since 1970, UTC
        "bytes": pa.int64(),  # of the frame on the wire, without FCS, even if truncated
        "network_bytes": pa.int32(),  # of the IP packet, from its header
        "version": pa.int8(),  # of IP
        "tos": pa.int16(),  # DSCP and ECN
        "ttl": pa.int16(),
        "vlan": pa.int16(),  # of the outermost tag
        "protocol": pa.int16(),  # for IPv6 after the extension headers
        "source_high": pa.int64(),  # halves of addresses as unsigned bits; for IPv4 the upper half is 0
        "source": pa.int64(),
        "destination_high": pa.int64(),
        "destination": pa.int64(),
        "source_port": pa.int32(),  # of TCP and UDP, in the first fragment only
        "destination_port": pa.int32(),
        "payload": pa.int32(),  # payload bytes of TCP or UDP, if its header was captured; not after extension headers
        "sequence": pa.int64(),  # of TCP: sequence number of its first byte
        "identity": pa.int64(),  # hash of the fields that routers do not change; 0 if not IP
        "behind": pa.int16(),  # bytes in `identity` if too few were captured
        "interface": pa.int32(),  # number in the file, through all sections; of Linux cooked v2 the interface index
    }
)
"""Columns of a piece, one row per packet. All but the first two are -1 if they do not apply to a packet."""

Array = npt.NDArray[Any]


def read_packets(
    file: Path, *, piece: int = PIECE, behind: int = PAYLOAD_BYTES, interfaces: Iterable[str] = ()
) -> Generator[pa.RecordBatch, None, list[str]]:
    """Yield all packets of a capture in file order, at most `piece` at a time, with the columns of `SCHEMA`.

    Return the names of the interfaces in the file, in the order of their numbers.

    A file that ends in the middle of a packet (for example because the capture tool was killed, or the disk was full)
    is read up to that packet. Then, as for a file that is not a capture, raise `CaptureError`. `behind` bytes, 8 to
    1024, distinguish packets. Packets of an unknown link type are an error, unless `interfaces` has names or numbers of
    other interfaces only: then they are left out.
    """
    if file.exists() and not (file.is_file() or file.is_dir()):
        # A FIFO would block.
        raise CaptureError(f"{file}: it is not a regular file")
    options = [f"--piece={piece}", f"--behind={behind}", *(f"--interface={each}" for each in interfaces)]
    command = [str(find_own_program(PROGRAM)), *options, "--", str(file)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        # The kernel limits a user's large pipes; the default size also works. Only Linux supports other sizes.
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            problem, names = yield from _read_pieces(process.stdout)
        except (ValueError, LookupError, TypeError) as error:
            errors = process.stderr.read().decode(errors="replace").strip().removeprefix(f"{PROGRAM}: ")
            raise CaptureError(f"{file}: {errors or f'{PROGRAM} stopped early ({error})'}") from error
        finally:
            process.kill()
    if problem is not None:
        raise CaptureError(f"{file}: {problem}")
    return names


def column_array(piece: pa.RecordBatch | pa.Table, name: str) -> Array:
    """Return a column as an array, without a copy if the column is contiguous."""
    return np.asarray(piece.column(name).to_numpy())


def _read_pieces(stream: IO[bytes]) -> Generator[pa.RecordBatch, None, tuple[str | None, list[str]]]:
    """Yield the pieces from the program; return its error message for the file, if any, and the names of the
    interfaces.
    """
    head = json.loads(stream.readline())
    expected = [
        [name, np.dtype(kind.to_pandas_dtype()).str] for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    ]
    if head != {"format": FORMAT, "columns": expected}:
        raise ValueError(f"found columns {head}, expected those of format {FORMAT}")
    while "rows" in (line := json.loads(stream.readline())):
        arrays = []
        for kind in SCHEMA.types:
            content = stream.read(line["rows"] * kind.bit_width // 8)
            if len(content) != line["rows"] * kind.bit_width // 8:
                raise ValueError("a part is truncated")
            arrays.append(pa.Array.from_buffers(kind, line["rows"], [None, pa.py_buffer(content)]))
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return line["problem"], line["interfaces"]
