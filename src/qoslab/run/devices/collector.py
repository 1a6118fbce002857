"""Collector of router output: runs show commands with Unicon and parses them with Genie.

Both take seconds to import, so they run in a separate process, which is started early and imports them while a lab
comes up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from qoslab.errors import DeviceError
from qoslab.run.devices.ansible_inventory import Access, IosAccess
from qoslab.run.devices.testbed import build_testbed
from qoslab.run.faults import TransientFault
from qoslab.run.helper_process import HelperProcess
from qoslab.system.programs import python_module_command

REPLY_S = 120.0
"""Time limit of a reply: two logins and two commands on any router that answers without a longer limit of its own."""
END_S = 3.0
PROGRAM = python_module_command("qoslab.run.devices.collector_process")


@dataclass(frozen=True)
class RouterAnswer:
    """Answer of a router."""

    raw: str
    """Raw answer, without echo and prompt; lines end in `\\n`."""
    parsed: dict[str, Any] | None
    reason: str = ""
    """Reason for missing parsed values."""
    before_ns: int | None = None
    """Time of sending, in nanoseconds since 1970; None if the text was only parsed."""
    after_ns: int | None = None
    """Time of the answer."""

    @property
    def data(self) -> dict[str, Any]:
        """Return the data for a run folder in addition to the raw text."""
        return {"unparsed": self.reason} if self.parsed is None else self.parsed


class CollectorProcess:
    """Context manager; the process starts with the object and ends with the block.

    All methods may be called from any thread, and wait for the answer.
    """

    def __init__(self, *arguments: str) -> None:
        """`arguments` are those of `qoslab.run.devices.collector_process`."""
        self._helper = HelperProcess([*PROGRAM, *arguments], "the process that observes routers")
        self._reply_s = REPLY_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(
        self, routers: Mapping[str, Access], *, known_hosts: Path | None = None, wait: bool = True, lab: str = ""
    ) -> None:
        """Log in to the IOS routers in parallel. Raise `DeviceError` if one is unreachable or refuses the login.

        Without `wait`, return at once; the first command then raises the failure. `lab` distinguishes routers of the
        same name; the next lab with that name replaces the previous one.
        """
        ios = {name: access for name, access in routers.items() if isinstance(access, IosAccess)}
        if not ios:
            return
        self._reply_s = max(self._reply_s, *(REPLY_S + 2 * (access.answer_s or 0) for access in ios.values()))
        devices = build_testbed("run", ios, known_hosts=known_hosts)["devices"]
        futures = {
            name: self._helper.ask(op="connect", device=_device_key(lab, name), name=name, connection=device)
            for name, device in devices.items()
        }
        if wait:
            for name, future in futures.items():
                self._reply(future, name)

    def observe(self, device: str, command: str, *, lab: str = "") -> RouterAnswer:
        """Return the router's current answer to a show command, parsed. Raise `DeviceError` if it does not answer."""
        reply = self._reply(self._helper.ask(op="observe", device=_device_key(lab, device), command=command), device)
        return RouterAnswer(reply["raw"], reply["parsed"], reply["reason"], reply["before_ns"], reply["after_ns"])

    def show(self, device: str, command: str, *, lab: str = "") -> RouterAnswer:
        """Observe without parsing, which takes time of this machine that traffic may need."""
        reply = self._reply(self._helper.ask(op="show", device=_device_key(lab, device), command=command), device)
        return RouterAnswer(reply["raw"], None, reply["reason"], reply["before_ns"], reply["after_ns"])

    def configure(self, device: str, lines: list[str], *, lab: str = "") -> str:
        """Enter configuration lines and return the router's answer. Raise `DeviceError` if it does not answer.

        Configurations are pushed by Ansible; this is for single lines at a given time while traffic runs.
        """
        return str(
            self._reply(self._helper.ask(op="configure", device=_device_key(lab, device), lines=lines), device)["raw"]
        )

    def parse(self, command: str, text: str, os_name: str = "ios") -> RouterAnswer:
        """Parse `text`, the answer to `command`."""
        reply = self._reply(self._helper.ask(op="parse", os=os_name, command=command, text=text), "")
        return RouterAnswer(text, reply["parsed"], reply["reason"])

    def difference(self, before: str, after: str, volatile: Iterable[str] = ()) -> list[str]:
        """Return the removed and added lines of a configuration; see `qoslab.genie.configuration_diff`."""
        asked = self._helper.ask(op="difference", before=before, after=after, volatile=list(volatile))
        lines: list[str] = self._reply(asked, "")["lines"]
        return lines

    def close(self) -> None:
        """End the process, which closes its connections."""
        self._helper.close(END_S)

    @property
    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._helper.over

    def _reply(self, future: Future[dict[str, Any]], device: str) -> dict[str, Any]:
        try:
            reply = future.result(self._reply_s)
        except FutureTimeoutError as error:
            raise TransientFault(f"{device} did not answer within {self._reply_s:.0f} s") from error
        if reply["ok"]:
            return reply
        failure = reply["error"]
        text = failure["message"]
        match failure["kind"]:
            case "login":
                raise TransientFault(f"{device} refused the login: {text}", hint="Check user, password, enable secret.")
            case "unreachable":
                raise TransientFault(f"{device} cannot be reached: {text}", hint="Check its address and port.")
            case "unknown":
                raise DeviceError(f"{device} is not a connected router", hint="Only IOS routers are connected.")
            case _:
                raise TransientFault(f"observing {device} failed: {text}")


def _device_key(lab: str, device: str) -> str:
    return f"{lab}/{device}" if lab else device


class SharedCollector:
    """Collector shared by all labs of a run, started when the first lab with an IOS router needs it.

    If it has died, it is started again and connected to the same routers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collector: CollectorProcess | None = None
        self._routers: dict[str, tuple[Mapping[str, Access], Path | None]] = {}
        """Arguments of `connect`, by lab."""

    def get(self) -> CollectorProcess:
        """Return the collector; start it if needed, without waiting."""
        with self._lock:
            if self._collector is not None and self._collector.has_ended:
                self._collector.close()
                self._collector = None
            if self._collector is None:
                self._collector = CollectorProcess()
                for lab, (routers, known_hosts) in self._routers.items():
                    self._collector.connect(routers, known_hosts=known_hosts, wait=False, lab=lab)
            return self._collector

    def connect(self, routers: Mapping[str, Access], *, known_hosts: Path | None, lab: str) -> None:
        """Start the logins of the collector to the IOS routers of a lab without waiting for them."""
        collector = self.get()
        with self._lock:
            self._routers[lab] = (dict(routers), known_hosts)
        collector.connect(routers, known_hosts=known_hosts, wait=False, lab=lab)

    def close(self) -> None:
        """End the collector if it was started."""
        with self._lock:
            collector, self._collector = self._collector, None
        if collector is not None:
            collector.close()
