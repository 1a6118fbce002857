"""Logins of virtual routers that stay idle, that do not read, or that type without end: they end, wait, and lose
nothing.

Tested by SSH and by telnet, each with a different client.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator

import asyncssh
import pytest
from fake_device import PASSWORD, USER, FakeDevice

from qoslab.ios.cli.terminal import MAX_UNREAD_CHARACTERS, Terminal
from qoslab.ios.model.device import Line
from qoslab.system.telnet import TelnetConnection

WINDOW = 2**15
"""Receive window of a client in bytes."""
REPETITIONS = 1500
"""Number of commands with answers of hundreds of bytes: several times the buffers of both ends and kernels."""


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeDevice]:
    with FakeDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


class Client:
    """Login: its input, and its output as far as it is read."""

    def __init__(
        self, send: Callable[[str], None], read: Callable[[], Awaitable[str]], close: Callable[[], None]
    ) -> None:
        self.send, self.read, self.close = send, read, close

    async def until(self, end: str) -> str:
        """Return all output up to a text, or to the end."""
        text = ""
        async with asyncio.timeout(30):
            while not text.endswith(end) and (part := await self.read()):
                text += part
        return text


async def connect_by_ssh(device: FakeDevice) -> Client:
    client = await asyncssh.connect(
        "127.0.0.1", device.ssh, username=USER, password=PASSWORD, known_hosts=None, config=None
    )
    process = await client.create_process(term_type="vt100", window=WINDOW, errors="replace")

    async def read() -> str:
        return str(await process.stdout.read(4096))

    return Client(process.stdin.write, read, client.abort)


async def connect_by_telnet(device: FakeDevice) -> Client:
    connection = socket.socket()
    # Otherwise the kernel buffers megabytes, at both ends.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
    device.telnet_listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WINDOW)
    connection.connect(("127.0.0.1", device.telnet))
    reader, writer = await asyncio.open_connection(sock=connection, limit=WINDOW)
    protocol = TelnetConnection.client()

    async def read() -> str:
        while data := await reader.read(4096):
            text, answer = protocol.receive(data)
            writer.write(answer)
            if text:
                return text.decode()
        return ""

    client = Client(lambda text: writer.write(protocol.send(text.encode())), read, writer.transport.abort)
    await client.until("Username: ")
    client.send(f"{USER}\r{PASSWORD}\r")
    return client


WAYS = pytest.mark.parametrize("way", [connect_by_ssh, connect_by_telnet])


def test_idle_timeout_follows_exec_timeout() -> None:
    limits = [None, (0, 0), (0, 30), (5, 0), (10, 0)]
    assert [Line("vty", 0, exec_timeout=each).idle_s for each in limits] == [600, None, 30, 300, 600]


@WAYS
def test_idle_login_ends(device: FakeDevice, way: Callable[[FakeDevice], Awaitable[Client]]) -> None:
    """Wait at a prompt, and at a question of the router."""

    async def run() -> list[float]:
        took = []
        for typed in ("", "show running-config\r"):
            client = await way(device)
            await client.until("R1>")
            device.router.device.lines["vty 0"].exec_timeout = (0, 1)
            client.send("enable\r" + ("opensesame\r" + typed if typed else ""))
            began = time.monotonic()
            text = await client.until("\0")
            took.append(time.monotonic() - began)
            device.router.device.lines["vty 0"].exec_timeout = None
            assert text.endswith(" --More-- " if typed else "Password: "), text[-80:]
        return took

    for seconds in asyncio.run(run()):
        # The second one is complete; the time until a busy machine closes the connection does not matter.
        assert 0.99 <= seconds < 10


@pytest.mark.long
@WAYS
def test_router_waits_for_a_client_that_does_not_read(
    device: FakeDevice, way: Callable[[FakeDevice], Awaitable[Client]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop reading: a command runs after the client has read the answers to the earlier ones, so that no answers pile
    up.
    """
    written = 0
    write = Terminal.write

    def count_and_write(self: Terminal, text: str) -> None:
        nonlocal written
        written += len(text)
        write(self, text)

    monkeypatch.setattr(Terminal, "write", count_and_write)

    async def run() -> None:
        client = await way(device)
        await client.until("R1>")
        client.send("terminal length 0\r" + "show version\r" * REPETITIONS + "show privilege\r")
        before = -1
        while written != before:
            before = written
            await asyncio.sleep(0.3)
        answer = await client.until("privilege level is 1\r\nR1>")
        answers, length = answer.count("Configuration register is"), len(answer)
        assert answers == REPETITIONS
        assert before < length / 2
        client.close()

    asyncio.run(run())


@pytest.mark.long
def test_slow_client_reads_a_long_answer_to_its_end(device: FakeDevice) -> None:
    lines = "".join(f"access-list 101 permit udp any any eq {number}\n" for number in range(1, 3000))

    async def run() -> str:
        assert not await device.router.replace(lines)
        login = {"username": USER, "password": PASSWORD, "known_hosts": None, "config": None}
        async with asyncssh.connect("127.0.0.1", device.ssh, **login) as client:
            process = await client.create_process("show access-lists", window=WINDOW)
            await asyncio.sleep(0.3)
            return str(await process.stdout.read())

    assert asyncio.run(run()).endswith("eq 2999\r\n")


@WAYS
def test_endless_input_waits_at_the_client(
    device: FakeDevice, way: Callable[[FakeDevice], Awaitable[Client]], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    feed = Terminal.feed

    def watch_and_write(self: Terminal, text: str) -> None:
        nonlocal most
        feed(self, text)
        most = max(most, len(self._input))

    monkeypatch.setattr(Terminal, "feed", watch_and_write)
    device.router.outcomes, answered = [], device.router.outcomes

    async def run() -> None:
        client = await way(device)
        await client.until("R1>")
        client.send("ping 10.0.0.2\r")
        await client.until("seconds:\r\n")
        client.send("!\r" * 200_000)
        while most <= MAX_UNREAD_CHARACTERS:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        client.close()

    try:
        asyncio.run(run())
    finally:
        device.router.outcomes = answered
    assert MAX_UNREAD_CHARACTERS < most < 2 * MAX_UNREAD_CHARACTERS
