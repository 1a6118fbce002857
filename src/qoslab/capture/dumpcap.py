"""dumpcap, Wireshark's capture program (https://www.wireshark.org/docs/man-pages/dumpcap.html)."""

from __future__ import annotations

import re

from qoslab.capture.base import CaptureCounts, CaptureError

_RUNNING = re.compile(r"^File: .", re.MULTILINE)
# "Capturing on" comes before the filter is compiled and the file is opened, "File:" after both.
_COUNTS = re.compile(
    r"^Packets received/dropped on interface '.*': (?P<received>\d+)/(?P<dropped>\d+) "
    r"\(pcap:(?P<pcap>\d+)/dumpcap:(?P<dumpcap>\d+)/flushed:(?P<flushed>\d+)/ps_ifdrop:\d+\)",
    re.MULTILINE,
)
_TALK = re.compile(r"^(?:Capturing on |File: |Packets(?: captured)?: \d+|Packets received/dropped |Running as user )")


class Dumpcap:
    """The tool `dumpcap`."""

    name = "dumpcap"
    programs: tuple[str, ...] = ("dumpcap",)
    # The kernel collects packets in blocks, for at most 250 ms (`CAP_READ_TIMEOUT`), and an unfinished block is lost
    # when a program ends. The rest is time to read the blocks, also on a busy machine.
    settles_s = 0.35

    def command(
        self, interface: str, file: str, *, filter: str = "", snaplen: int, comment: str = "", buffer_mib: int = 32
    ) -> tuple[str, ...]:
        """See `CaptureTool`."""
        argv = ["dumpcap", "-q", "-i", interface, "-w", file, "-s", str(snaplen), "-B", str(buffer_mib)]
        if filter:
            argv += ["-f", filter]
        if comment:
            argv += ["--capture-comment", comment]
        return tuple(argv)

    def is_running(self, stderr: str) -> bool:
        """See `CaptureTool`."""
        return _RUNNING.search(stderr) is not None

    def failure(self, stderr: str) -> str:
        """See `CaptureTool`."""
        lines = (line.strip() for line in re.split(r"[\r\n]+", stderr))
        return " ".join(line for line in lines if line and not _TALK.match(line)).removeprefix("dumpcap: ")

    def counts(self, stderr: str) -> CaptureCounts:
        """See `CaptureTool`."""
        found = list(_COUNTS.finditer(stderr))
        if not found:
            raise CaptureError(
                f"dumpcap did not report the number of dropped packets: {self.failure(stderr) or 'it was killed'}"
            )
        last = found[-1]
        return CaptureCounts(received=int(last["received"]), dropped=int(last["dropped"]))
