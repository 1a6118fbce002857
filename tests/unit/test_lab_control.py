"""Client of the control socket, against a server in this process; and a router that uses both."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.ios.environment import (
    DataPlaneDownError,
    DataPlaneRefusedError,
    KernelRefusedError,
    PortState,
    StorageError,
)
from qoslab.ios.model.device import Device, StaticRoute
from qoslab.ios.model.routes import installable_routes
from qoslab.platforms import MODELS, SOFTWARE
from qoslab.virtual_lab.control import ControlClient
from qoslab.virtual_lab.stack import internet_checksum
from qoslab.virtual_lab.virtual_router import Bound, Make, VirtualRouter

Answer = Callable[[dict[str, Any]], bytes | None]
"""Reply of the server to a request; None closes the connection."""


async def serve_replies(path: Path, answer: Answer, work: Callable[[], Awaitable[None]]) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            reply = answer(json.loads(line))
            if reply is None:
                break
            writer.write(reply)
        writer.close()

    server = await asyncio.start_unix_server(handle, path)
    try:
        await work()
    finally:
        server.close()


def ok_reply(**keys: Any) -> bytes:
    return json.dumps({"ok": True, **keys}).encode() + b"\n"


def run(path: Path, answer: Answer, work: Callable[[ControlClient], Awaitable[None]], **options: Any) -> None:
    async def with_client() -> None:
        async with ControlClient(path, **options) as client:
            await work(client)

    asyncio.run(serve_replies(path, answer, with_client))


def test_control_replies_match_requests(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> bytes:
        asked.append(request)
        return ok_reply(config={"a": 1}, policy_maps={"P": {}})

    async def work(client: ControlClient) -> None:
        await client.configure({"format": 1})
        assert await client.config() == {"a": 1}
        assert await client.resolve() == {"P": {}}
        await client.clear("FastEthernet0/1")
        await client.clear()
        assert await client.peer_pid() == os.getpid()

    run(tmp_path / "s", answer, work)
    assert [request["op"] for request in asked] == ["configure", "config", "resolve", "clear", "clear", "hello"]
    assert asked[3] == {"op": "clear", "interface": "FastEthernet0/1"}
    assert asked[4] == {"op": "clear"}


def test_refusal_names_code_and_reason(tmp_path: Path) -> None:
    error = {"code": "bad_config", "message": "policy_maps.P: no class"}

    async def work(client: ControlClient) -> None:
        with pytest.raises(DataPlaneRefusedError, match=r"policy_maps\.P: no class") as raised:
            await client.configure({})
        assert raised.value.code == "bad_config"

    run(tmp_path / "s", lambda request: json.dumps({"ok": False, "error": error}).encode() + b"\n", work)


@pytest.mark.parametrize("answer", [None, b"{", b"[]\n", b"nonsense\n", b'{"ok"\n'])
def test_invalid_answer_counts_as_a_dead_data_plane(tmp_path: Path, answer: bytes | None) -> None:
    async def work(client: ControlClient) -> None:
        with pytest.raises(DataPlaneDownError):
            await client.hello()

    run(tmp_path / "s", lambda request: answer, work, timeout=0.2)


def test_missing_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataPlaneDownError, match="none"):
        asyncio.run(ControlClient(tmp_path / "none").hello())


def test_client_reconnects_after_a_disconnect(tmp_path: Path) -> None:
    answers = iter([ok_reply(), None, ok_reply()])

    async def work(client: ControlClient) -> None:
        await client.hello()
        with pytest.raises(DataPlaneDownError):
            await client.hello()
        await client.hello()

    run(tmp_path / "s", lambda request: next(answers), work)


def test_late_reply_is_not_assigned_to_the_next_request(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            op = json.loads(line)["op"]
            if op == "config":
                await asyncio.sleep(0.2)
            writer.write(ok_reply(op=op, config=op))

    async def work() -> None:
        server = await asyncio.start_unix_server(handle, tmp_path / "s")
        async with ControlClient(tmp_path / "s", timeout=0.1) as client:
            with pytest.raises(DataPlaneDownError, match="no answer"):
                await client.config()
            await asyncio.sleep(0.2)
            assert (await client.hello())["op"] == "hello"
        server.close()

    asyncio.run(work())


# A router


class FakeStack:
    """IP stack that can be made to refuse."""

    def __init__(self) -> None:
        self.applied: list[Device] = []
        self.refuse = False

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ports(self) -> Mapping[str, PortState]:
        return {"FastEthernet0/0": PortState("02:00:00:00:00:01", True, 1500)}

    async def make_subinterfaces(self, device: Device, wired: Collection[str]) -> dict[str, str]:
        return {}

    async def remove_subinterfaces(self, device: Device, wired: Collection[str]) -> None: ...

    async def apply(self, device: Device) -> None:
        if self.refuse:
            self.refuse = False
            raise KernelRefusedError("the kernel answered EINVAL")
        self.applied.append(device)


def router(path: Path, stack: FakeStack) -> VirtualRouter:
    hardware = MODELS["3725"].hardware()
    return VirtualRouter(
        Make(MODELS["3725"], SOFTWARE["classic"], Device(hardware, hostname="R1")),
        Bound(ControlClient(path / "s"), stack, path / "startup-config"),  # type: ignore[arg-type]
        enable_secret="labs",
        log=lambda line: None,
    )


def with_router(path: Path, answer: Answer, work: Callable[[VirtualRouter, FakeStack], Awaitable[None]]) -> None:
    async def inside() -> None:
        stack = FakeStack()
        made = router(path, stack)
        assert await made.start() == []
        try:
            await work(made, stack)
        finally:
            await made.close()

    asyncio.run(serve_replies(path / "s", answer, inside))


def test_only_connected_ports_are_configured_under_the_node_name(tmp_path: Path) -> None:
    configs: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> bytes:
        if request["op"] == "configure":
            configs.append(request["config"])
        return ok_reply(interfaces={})

    (tmp_path / "startup-config").write_text("hostname Elsewhere\n")

    async def work(made: VirtualRouter, stack: FakeStack) -> None:
        assert made.device.hostname == "Elsewhere"
        assert configs[-1]["router"] == "R1"
        assert set(configs[-1]["interfaces"]) == {"FastEthernet0/0"}

    with_router(tmp_path, answer, work)


@pytest.mark.parametrize("refuser", ["data plane", "kernel"])
def test_refused_edit_changes_nothing(tmp_path: Path, refuser: str) -> None:
    configs: list[dict[str, Any]] = []
    refusing = False

    def answer(request: dict[str, Any]) -> bytes:
        if request["op"] == "configure":
            if refusing:
                return b'{"ok": false, "error": {"code": "bad_config", "message": "no"}}\n'
            configs.append(request["config"])
        return ok_reply(interfaces={})

    async def work(made: VirtualRouter, stack: FakeStack) -> None:
        nonlocal refusing
        before, config = made.device, made.data_plane_config()

        def change(device: Device) -> None:
            device.interfaces["FastEthernet0/0"].bandwidth_kbps = 5
            device.interfaces["FastEthernet0/0"].shutdown = True

        refusing, stack.refuse = refuser == "data plane", refuser == "kernel"
        with pytest.raises((DataPlaneRefusedError, KernelRefusedError)):
            await made.edit(change)
        assert made.device is before
        assert made.data_plane_config() == config == configs[-1]
        assert stack.applied[-1] is before
        refusing = False
        await made.edit(change)
        assert configs[-1]["interfaces"]["FastEthernet0/0"]["bandwidth_kbps"] == 5

    with_router(tmp_path, answer, work)


def test_unchanged_configuration_is_not_sent(tmp_path: Path) -> None:
    sent = 0

    def answer(request: dict[str, Any]) -> bytes:
        nonlocal sent
        sent += request["op"] == "configure"
        return ok_reply(interfaces={})

    async def work(made: VirtualRouter, stack: FakeStack) -> None:
        assert sent == 1

        def change(device: Device) -> None:
            device.interfaces["FastEthernet0/0"].description = "x"

        await made.edit(change)
        assert (sent, len(stack.applied)) == (1, 1)
        assert made.device.interfaces["FastEthernet0/0"].description == "x"

    with_router(tmp_path, answer, work)


def test_users_have_passwords_and_privileges(tmp_path: Path) -> None:
    (tmp_path / "startup-config").write_text(
        "username boss privilege 15 secret 0 mine\nusername guest secret 0 theirs\n"
    )

    async def work(made: VirtualRouter, stack: FakeStack) -> None:
        assert made.user_privilege("boss", "mine") == 15
        assert made.user_privilege("guest", "theirs") == 1
        assert made.user_privilege("boss", "theirs") is None
        assert made.user_privilege("nobody", "") is None
        assert made.opens_privileged_mode("labs")
        assert not made.opens_privileged_mode("mine")

    with_router(tmp_path, lambda request: ok_reply(interfaces={}), work)


def test_startup_configuration_that_is_refused_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "startup-config").write_text("hostname R9\nfrobnicate\n")

    async def inside() -> None:
        made = router(tmp_path, FakeStack())
        assert await made.start() == ["line 2: 'frobnicate': % Invalid input detected at '^' marker."]
        await made.close()

    asyncio.run(serve_replies(tmp_path / "s", lambda request: ok_reply(interfaces={}), inside))


def test_unsaved_configuration_is_reported(tmp_path: Path) -> None:
    async def work(made: VirtualRouter, stack: FakeStack) -> None:
        made.save_startup_config("hostname R1\n")
        assert made.startup_config() == "hostname R1\n"
        (tmp_path / "startup-config.new").mkdir()
        with pytest.raises(StorageError, match="cannot be written"):
            made.save_startup_config("hostname R2\n")
        assert made.startup_config() == "hostname R1\n"
        made.save_startup_config(None)
        assert made.startup_config() is None
        (tmp_path / "startup-config").write_bytes(b"\xff")
        with pytest.raises(StorageError, match="cannot be read"):
            made.startup_config()

    with_router(tmp_path, lambda request: ok_reply(interfaces={}), work)


# Routes and checksums


def routed_device(*routes: StaticRoute) -> list[Any]:
    device = Device(MODELS["3725"].hardware())
    device.interfaces["FastEthernet0/0"].address = IPv4Interface("10.0.0.1/24")
    device.interfaces["FastEthernet0/1"].address = IPv4Interface("10.0.1.1/24")
    device.interfaces["FastEthernet0/1"].shutdown = True
    device.routes = list(routes)
    return installable_routes(device)


def static_route(prefix: str, next_hop: str, distance: int | None = None) -> StaticRoute:
    return StaticRoute(IPv4Network(prefix), IPv4Address(next_hop), distance=distance)


def test_routes_are_installed_when_their_next_hop_is_reachable() -> None:
    assert routed_device(static_route("172.16.0.0/16", "10.0.0.2")) == [
        (IPv4Network("172.16.0.0/16"), IPv4Address("10.0.0.2"), None, 1)
    ]
    assert routed_device(static_route("172.16.0.0/16", "10.0.1.2")) == []


def test_next_hops_are_resolved_recursively_without_loops() -> None:
    found = routed_device(static_route("172.16.0.0/16", "10.0.0.2"), static_route("172.17.0.0/16", "172.16.0.9", 5))
    assert found[1] == (IPv4Network("172.17.0.0/16"), IPv4Address("10.0.0.2"), None, 5)
    assert routed_device(static_route("172.16.0.0/16", "172.17.0.1"), static_route("172.17.0.0/16", "172.16.0.1")) == []


@given(st.binary(min_size=2, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_checksum_over_a_valid_packet_is_zero(data: bytes) -> None:
    assert internet_checksum(data + internet_checksum(data).to_bytes(2, "big")) == 0
