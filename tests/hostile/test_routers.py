"""Malicious routers: each is abandoned after a stated time and size, with the reason."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_device import ENABLE, PASSWORD, USER

from misbehaving import telnet_server
from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessFault, AccessProxies, ProxyClosedFault

Serve = Callable[[socket.socket], None]
LOGIN = b"User Access Verification\r\n\r\nUsername: "


def repeat_output(text: bytes, pause_s: float = 0.0) -> Serve:
    """Print a text without end."""

    def serve(client: socket.socket) -> None:
        while True:
            client.sendall(text)
            time.sleep(pause_s)

    return serve


def answer_login(*texts: bytes, then: bytes | None = None) -> Serve:
    """Print one text after each input of the client; `then` answers all further input."""

    def serve(client: socket.socket) -> None:
        for text in itertools.chain(texts, itertools.repeat(then) if then is not None else ()):
            client.sendall(text)
            if not client.recv(1000):
                return
        client.recv(1000)

    return serve


def other_prompts(client: socket.socket) -> None:
    for number in itertools.count(1):
        client.sendall(b"\r\nR%d#" % number)
        if not client.recv(1000):
            return


def negotiate_endlessly(client: socket.socket) -> None:
    client.sendall(b"\xff\xfa")
    while True:
        client.sendall(b"y" * 65536)


ENDLESS = "printed more than 4 MiB without ending its answer"
SLOW = "printed for 1 s without ending its answer"
SILENT = "did not answer within 0.5 s"
PATIENT_S, QUICK_S = 60.0, 0.5
HOSTILE: dict[str, tuple[Serve, float, FailureKind, str]] = {
    # behaviour, seconds of silence, and the reported error
    "prints without end": (repeat_output(b"x" * 65536), PATIENT_S, FailureKind.ENDLESS, ENDLESS),
    "prints lines without end": (repeat_output(b"line\r\n" * 10_000), PATIENT_S, FailureKind.ENDLESS, ENDLESS),
    "prints NUL without end": (repeat_output(b"\0" * 65536), PATIENT_S, FailureKind.ENDLESS, ENDLESS),
    "prints escape sequences without end": (
        repeat_output(b"\x1b[2J\x1b[H" * 9000),
        PATIENT_S,
        FailureKind.ENDLESS,
        ENDLESS,
    ),
    "prints what is not UTF-8 without end": (
        repeat_output(b"\xc3\x28\xfe" * 20_000),
        PATIENT_S,
        FailureKind.ENDLESS,
        ENDLESS,
    ),
    "prints a byte now and then": (repeat_output(b".", 0.1), QUICK_S, FailureKind.ENDLESS, SLOW),
    "prints a line end now and then": (repeat_output(b"\r\n", 0.1), QUICK_S, FailureKind.ENDLESS, SLOW),
    "prints other prompts": (
        *(other_prompts, PATIENT_S, FailureKind.ENDLESS, "printed 11 different prompts without ending its answer"),
    ),
    "negotiates without end": (negotiate_endlessly, QUICK_S, FailureKind.NO_ANSWER, SILENT),
    "says nothing": (answer_login(b""), QUICK_S, FailureKind.NO_ANSWER, SILENT),
    "asks for a name and says nothing": (answer_login(LOGIN, b""), QUICK_S, FailureKind.NO_ANSWER, SILENT),
}


@dataclass(frozen=True)
class ReachedRouter:
    """Routers behind one access proxy; the name of each describes its fault."""

    proxies: AccessProxies
    ports: Mapping[str, int]
    transcripts: Path

    def transcribed_bytes(self, name: str) -> int:
        return sum(each.stat().st_size for each in self.transcripts.glob(f"{name}.*"))


@pytest.fixture(scope="module")
def router_behind_proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReachedRouter]:
    ways, ports, transcripts = {}, {}, tmp_path_factory.mktemp("transcripts")
    with ExitStack() as opened:
        for name, (serve, answer_s) in {
            **{name: (serve, answer_s) for name, (serve, answer_s, _, _) in HOSTILE.items()},
            **{name: (serve, QUICK_S) for name, serve in ASKS.items()},
        }.items():
            ports[name] = opened.enter_context(telnet_server(serve))
            ways[name] = AccessMethod("127.0.0.1", ports[name], "telnet", USER, PASSWORD, ENABLE, answer_s=answer_s)
        yield ReachedRouter(opened.enter_context(AccessProxies(ways, transcripts=transcripts)), ports, transcripts)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_router_with_endless_output_is_abandoned(name: str, router_behind_proxies: ReachedRouter) -> None:
    _, _, kind, text = HOSTILE[name]
    with pytest.raises((ProxyClosedFault, AccessFault)) as found:
        router_behind_proxies.proxies.open(name)
    assert found.value.kind is kind
    assert f"{name}: {kind}: 127.0.0.1 port {router_behind_proxies.ports[name]} by telnet {text}" in str(found.value)
    # Each line begins with a time.
    assert 0 < router_behind_proxies.transcribed_bytes(name) < 2**24


ASKS = {
    "asks for the name again and again": answer_login(then=LOGIN),
    "asks for the password again and again": answer_login(LOGIN, then=b"Password: "),
    "hangs up at once": lambda client: None,
    "hangs up after the name": answer_login(LOGIN, b""),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ASKS)
def test_router_that_refuses_all_logins_is_reported(name: str, router_behind_proxies: ReachedRouter) -> None:
    began = time.monotonic()
    with pytest.raises((ProxyClosedFault, AccessFault)) as found:
        router_behind_proxies.proxies.open(name)
    assert str(found.value).startswith(f"{name}: ")
    assert PASSWORD not in str(found.value)
    assert time.monotonic() - began < PATIENT_S
    assert router_behind_proxies.transcribed_bytes(name) < 2**20
