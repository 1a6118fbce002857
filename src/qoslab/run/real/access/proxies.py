"""Proxies of a run: their process gets the access method of each device, and returns a port for each."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict
from pathlib import Path
from typing import Self

from qoslab.errors import DeviceError
from qoslab.model.inventory import ANSWER_S
from qoslab.run.devices.ansible_inventory import IOS_GROUP, IosAccess
from qoslab.run.devices.login_failures import TRANSIENT_FAILURES, FailureKind
from qoslab.run.faults import TransientFault
from qoslab.run.helper_process import HelperProcess, Message
from qoslab.run.real.access.methods import USER, AccessFailure, AccessMethod, ProxySettings
from qoslab.run.scratch import Scratch
from qoslab.run.threads import wait_for_result
from qoslab.system.programs import python_module_command

PROGRAM = python_module_command("qoslab.run.real.access.proxy_process")
PROCESS = "the access proxy of the routers"
HOST = "127.0.0.1"
PASSWORD_BYTES = 18
START_S = 30.0
END_S = 5.0
"""Time for logging out of consoles."""
PAUSE_ROUND_TRIPS, MIN_PAUSE_S, MAX_PAUSE_S = 5, 0.02, 0.05
"""Parameters of `output_pause_s`: factor of the round-trip time, least and greatest pause."""


class AccessFault(DeviceError):  # noqa: N818 - the field's word
    """Refused login that would be refused again."""

    def __init__(self, message: str, kind: FailureKind, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class ProxyClosedFault(TransientFault):
    """Refused login that may succeed later."""

    def __init__(self, message: str, kind: FailureKind, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class AccessProxies:
    """Access proxies of several devices, with their process; a context manager.

    The passwords of the proxies are made for this object and end with it. Its methods may be called from any thread.
    """

    def __init__(
        self,
        ways: Mapping[str, AccessMethod],
        *,
        transcripts: Path | None = None,
        note: Callable[[str], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`ways` are access methods by device; `note` receives a sentence on each client that could not log in.

        `check` is called while waiting for a device, and raises to end the wait.
        """
        self._ways = dict(ways)
        self._note = note
        self._check = check
        self._passwords = {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in ways}
        self._folder = Scratch("proxy")
        self._opened: Future[Message] = Future()
        self._troubles: dict[str, AccessFailure] = {}
        self._round_trips: dict[str, float] = {}
        """Round-trip times in seconds, of devices with a login."""
        self.gone = ""
        """Reason for the end of its process; empty while it runs."""
        self._callbacks: list[Callable[[str], None]] = []
        self._helper = HelperProcess(PROGRAM, PROCESS, heard=self._handle_message, gone=self._handle_exit)
        self._helper.send(
            asdict(ProxySettings(self._ways, self._passwords, None if transcripts is None else str(transcripts)))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def access(self, groups: Mapping[str, str] | None = None) -> dict[str, IosAccess]:
        """Return the access of Ansible and Unicon to each device.

        `groups` are the devices' groups of the inventory; the default is `ios`.
        """
        ports = self._wait(self._opened, START_S, "did not open")["ports"]
        return {
            name: IosAccess(
                HOST,
                USER,
                self._passwords[name],
                ports[name],
                group=(groups or {}).get(name, IOS_GROUP),
                proxied=True,
                pause_s=output_pause_s(self._round_trips.get(name)),
                answer_s=None if way.answer_s == ANSWER_S else math.ceil(way.answer_s),
            )
            for name, way in self._ways.items()
        }

    def known_hosts(self) -> Path:
        """Return a known_hosts file for the proxies, which exists as long as they do."""
        opened = self._wait(self._opened, START_S, "did not open")
        file = self._folder.path / "known_hosts"
        file.write_text(
            "".join(f"[{HOST}]:{port} {opened['host_key']}\n" for port in opened["ports"].values()), encoding="utf-8"
        )
        return file

    def open(self, *devices: str) -> None:
        """Log in to these devices, or to all, in parallel, in advance for the first client.

        Raise `AccessFault` or `ProxyClosedFault` with every device that refuses the login, and the reasons; the kind is
        from the first.
        """
        self._wait(self._opened, START_S, "did not open")
        asked = {name: self._helper.ask(device=name, op="open") for name in devices or self._ways}
        troubles = {}
        for name, future in asked.items():
            reply = self._wait(future, 10 * self._ways[name].answer_s, f"did not report whether {name} accepts it")
            if reply["ok"]:
                self._round_trips[name] = reply["round_trip_s"]
            else:
                troubles[name] = _parse_failure(reply["trouble"])
        if troubles:
            raise _failure_error(troubles)

    def ask(self, device: str, *lines: str) -> list[str]:
        """Return a device's answers to these lines, in one login; its questions about them are answered.

        Nothing is saved, and requests are confirmed. Raise `AccessFault` or `ProxyClosedFault` if it is not reached, or
        does not answer.
        """
        patience_s = (5 + len(lines)) * self._ways[device].answer_s
        reply = self._wait(
            self._helper.ask(device=device, op="ask", lines=lines), patience_s, f"got no answer from {device}"
        )
        if not reply["ok"]:
            raise _failure_error({device: _parse_failure(reply["trouble"])})
        answers: list[str] = reply["answers"]
        return answers

    def explain_failure(self, device: str) -> DeviceError | None:
        """Return why the latest client could not log in; None if all could."""
        trouble = self._troubles.get(device)
        return None if trouble is None else _failure_error({device: trouble})

    def on_exit(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the reason in `gone` if the process ends before it is closed, in any thread.

        It may be called twice.
        """
        self._callbacks.append(tell)
        if self.gone:
            tell(self.gone)

    def close(self) -> None:
        """End the process, and all logins with it."""
        self._callbacks.clear()
        self._helper.close(END_S)
        self._folder.close()

    def _handle_message(self, message: Message) -> None:
        if "ports" in message:
            self._opened.set_result(message)
        else:
            trouble = self._troubles[message["device"]] = _parse_failure(message["trouble"])
            self._note(f"{message['device']}: {trouble}")

    def _handle_exit(self, fault: TransientFault) -> None:
        self.gone = f"no router can be reached any more: {fault.message}"
        if not self._opened.done():
            self._opened.set_exception(fault)
        for tell in self._callbacks:
            tell(self.gone)

    def _wait(self, future: Future[Message], seconds: float, what: str) -> Message:
        try:
            return wait_for_result(future, self._check, seconds)
        except FutureTimeoutError as error:
            raise TransientFault(f"{PROCESS} {what} within {seconds:.0f} s") from error


def output_pause_s(round_trip_s: float | None) -> float | None:
    """Return how long clients wait for more output after a prompt, in seconds; None: their own default.

    The pieces of an answer arrive less than a few round-trip times apart. For a nearby device this is less than the
    default of clients, which is meant for slow lines, and they wait after each line.
    """
    if round_trip_s is None:
        return None
    pause_s = max(MIN_PAUSE_S, PAUSE_ROUND_TRIPS * round_trip_s)
    return pause_s if pause_s <= MAX_PAUSE_S else None


def _parse_failure(reply: Mapping[str, str]) -> AccessFailure:
    return AccessFailure(FailureKind(reply["kind"]), reply["message"], reply["hint"])


def _failure_error(troubles: Mapping[str, AccessFailure]) -> AccessFault | ProxyClosedFault:
    first = next(iter(troubles.values()))
    message = "\n".join(f"{name}: {trouble}" for name, trouble in troubles.items())
    hint = " ".join(dict.fromkeys(trouble.hint for trouble in troubles.values() if trouble.hint))
    kind = ProxyClosedFault if all(each.kind in TRANSIENT_FAILURES for each in troubles.values()) else AccessFault
    return kind(message, first.kind, hint=hint)
