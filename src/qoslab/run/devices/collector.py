"""Takes show commands of routers with Unicon and has Genie parse them.

Both take seconds to import, so they live in a process of their own, which is started early and imports while a lab
comes up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qoslab.errors import DeviceError
from qoslab.run.devices.ansible_inventory import Access, IosAccess
from qoslab.run.devices.testbed import testbed
from qoslab.run.faults import PassingFault
from qoslab.run.helper_process import HelperProcess
from qoslab.system.programs import python_module

REPLY_S = 120.0
"""Longer than two logins and two commands on a router that answers at all, and needs no more time than others."""
END_S = 3.0
PROGRAM = python_module("qoslab.run.devices.collector_process")


@dataclass(frozen=True)
class Observed:
    """An answer of a router."""

    raw: str
    """Lines end in `\\n`; without echo and prompt."""
    parsed: dict[str, Any] | None
    reason: str = ""
    """Reason for missing parsed values."""
    before_ns: int | None = None
    """Time of sending, in nanoseconds since 1970; None for a text that was only parsed."""
    after_ns: int | None = None
    """Time of the answer."""

    @property
    def data(self) -> dict[str, Any]:
        """Return the data for a run folder in addition to the raw text."""
        return {"unparsed": self.reason} if self.parsed is None else self.parsed


class Collector:
    """A context manager; the process starts with the object and ends with the block.

    All methods may be called from any thread, and block until the answer is there.
    """

    def __init__(self, *arguments: str) -> None:
        """`arguments` of the process are those of `qoslab.run.devices.collector_process`."""
        self._helper = HelperProcess([*PROGRAM, *arguments], "the process that observes routers")
        self._reply_s = REPLY_S

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(
        self, routers: Mapping[str, Access], *, known_hosts: Path | None = None, wait: bool = True, lab: str = ""
    ) -> None:
        """Log in to the IOS routers, side by side. `DeviceError` if one cannot be reached or refuses the login.

        Without `wait` it returns at once, and a failure comes with the first command. `lab` distinguishes routers of
        the same name apart; the next lab with that name takes the place of the one before."""
        ios = {name: access for name, access in routers.items() if isinstance(access, IosAccess)}
        if not ios:
            return
        self._reply_s = max(self._reply_s, *(REPLY_S + 2 * (access.answer_s or 0) for access in ios.values()))
        devices = testbed("run", ios, known_hosts=known_hosts)["devices"]
        futures = {
            name: self._helper.ask(op="connect", device=_key(lab, name), name=name, connection=device)
            for name, device in devices.items()
        }
        if wait:
            for name, future in futures.items():
                self._reply(future, name)

    def observe(self, device: str, command: str, *, lab: str = "") -> Observed:
        """The router's answer to a show command now, and what it says. `DeviceError` if it does not answer."""
        reply = self._reply(self._helper.ask(op="observe", device=_key(lab, device), command=command), device)
        return Observed(reply["raw"], reply["parsed"], reply["reason"], reply["before_ns"], reply["after_ns"])

    def show(self, device: str, command: str, *, lab: str = "") -> Observed:
        """Observe without parsing: parsing takes this machine's time, and traffic may need it."""
        reply = self._reply(self._helper.ask(op="show", device=_key(lab, device), command=command), device)
        return Observed(reply["raw"], None, reply["reason"], reply["before_ns"], reply["after_ns"])

    def configure(self, device: str, lines: list[str], *, lab: str = "") -> str:
        """Enter configuration lines and return the router's answer. `DeviceError` if it does not answer.

        Configurations are pushed by Ansible; this is for a line that has its moment while traffic runs.
        """
        return str(self._reply(self._helper.ask(op="configure", device=_key(lab, device), lines=lines), device)["raw"])

    def parse(self, command: str, text: str, os_name: str = "ios") -> Observed:
        """Parse `text`, the answer to `command`."""
        reply = self._reply(self._helper.ask(op="parse", os=os_name, command=command, text=text), "")
        return Observed(text, reply["parsed"], reply["reason"])

    def difference(self, before: str, after: str, volatile: Iterable[str] = ()) -> list[str]:
        """Return the removed and added lines of a configuration; see `qoslab.genie.configuration_diff`."""
        asked = self._helper.ask(op="difference", before=before, after=after, volatile=list(volatile))
        lines: list[str] = self._reply(asked, "")["lines"]
        return lines

    def close(self) -> None:
        """End the process; it hangs up."""
        self._helper.close(END_S)

    @property
    def over(self) -> bool:
        """True if the process has ended."""
        return self._helper.over

    def _reply(self, future: Future[dict[str, Any]], device: str) -> dict[str, Any]:
        try:
            reply = future.result(self._reply_s)
        except FutureTimeoutError as error:
            raise PassingFault(f"{device} did not answer within {self._reply_s:.0f} s") from error
        if reply["ok"]:
            return reply
        failure = reply["error"]
        text = failure["message"]
        match failure["kind"]:
            case "login":
                raise PassingFault(f"{device} refused the login: {text}", hint="Check user, password, enable secret.")
            case "unreachable":
                raise PassingFault(f"{device} cannot be reached: {text}", hint="Check its address and port.")
            case "unknown":
                raise DeviceError(f"{device} is not a router that was connected to", hint="Only IOS routers are.")
            case _:
                raise PassingFault(f"observing {device} failed: {text}")


def _key(lab: str, device: str) -> str:
    return f"{lab}/{device}" if lab else device


class SharedCollector:
    """One collector for all labs of a run, started when the first lab with an IOS router needs it.

    One that has died is started again, and knows the routers that the one before knew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collector: Collector | None = None
        self._routers: dict[str, tuple[Mapping[str, Access], Path | None]] = {}
        """Arguments of `connect`, by lab."""

    def get(self) -> Collector:
        """The collector; starts it and returns at once."""
        with self._lock:
            if self._collector is not None and self._collector.over:
                self._collector.close()
                self._collector = None
            if self._collector is None:
                self._collector = Collector()
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
        """End it, if it was started."""
        with self._lock:
            collector, self._collector = self._collector, None
        if collector is not None:
            collector.close()
