"""Platforms: the permitted settings of each kind of node."""

from __future__ import annotations

import pytest

from qoslab.model.experiment import TCP_PROFILES, Node
from qoslab.platforms import MODELS, PLATFORMS, SOFTWARE, node_platform
from qoslab.platforms.tcp import settings_without_effect

HOST = Node(platform="host")
R3725 = Node(platform="ios", model="3725")
R2811 = Node(platform="ios", model="2811")
SWITCH = Node(platform="ios", model="3750G")
LINUX = Node(platform="engine")


def test_platform_registry_lists_all_platforms() -> None:
    for name, platform in PLATFORMS.items():
        assert platform.name == name
    assert node_platform(R3725) is PLATFORMS["ios"]
    roles = {
        node.model or node.platform: node_platform(node).ansible_role(node) for node in (HOST, R3725, SWITCH, LINUX)
    }
    assert roles == {"host": None, "3725": "ios", "3750G": "ios_switch", "engine": "engine_router"}


@pytest.mark.parametrize(
    ("node", "generation"),
    [
        (HOST, None),
        (R3725, "classic"),
        (R2811, "hqf"),
        (Node(platform="ios", model="2811", generation="classic"), "classic"),
        (SWITCH, None),
        (Node(platform="engine", model="3750G"), None),
        (LINUX, "hqf"),
        (Node(platform="engine", model="3725"), "classic"),
        (Node(platform="engine", model="3725", generation="hqf"), "hqf"),
    ],
)
def test_platform_has_a_generation(node: Node, generation: str | None) -> None:
    assert node_platform(node).generation(node) == generation


@pytest.mark.parametrize("platform", ["ios", "engine"])
@pytest.mark.parametrize("model", MODELS)
def test_both_router_platforms_share_a_model_s_interfaces(platform: str, model: str) -> None:
    node = Node.model_validate({"platform": platform, "model": model})
    for interface in MODELS[model].interfaces:
        for framing in ("ethernet", "ppp", "hdlc"):
            problem = node_platform(node).interface_problem(node, interface.name, framing)
            assert (problem is None) == (framing in interface.framings)
        assert interface.name in (node_platform(node).interfaces(node) or ())
    assert node_platform(node).interface_problem(node, "FastEthernet9/9", "ethernet") is not None


@pytest.mark.parametrize(
    ("node", "interface", "framing", "right"),
    [
        (HOST, "eth0", "ethernet", True),
        (HOST, "eth0", "ppp", False),
        (HOST, "FastEthernet0/0", "ethernet", False),
        (R3725, "Fa0/0", "ethernet", False),
        (R3725, "fastethernet0/0", "ethernet", False),
        (SWITCH, "GigabitEthernet1/0/28", "ethernet", True),
        (SWITCH, "GigabitEthernet1/0/29", "ethernet", False),
        (SWITCH, "GigabitEthernet1/0/1", "ppp", False),
        (LINUX, "FastEthernet0/0", "ethernet", True),
        (LINUX, "Serial0/1/0", "ppp", True),
        (LINUX, "Serial0/1/0", "ethernet", False),
        (LINUX, "GigabitEthernet0/0", "hdlc", False),
        (LINUX, "eth0", "ethernet", False),
    ],
)
def test_platform_provides_its_interfaces(node: Node, interface: str, framing: str, right: bool) -> None:
    assert (node_platform(node).interface_problem(node, interface, framing) is None) == right


@pytest.mark.parametrize(
    ("node", "keys"),
    [
        (HOST, []),
        (Node(platform="host", model="3725", generation="hqf"), ["model", "generation"]),
        (R3725, []),
        (Node(platform="ios"), ["model"]),
        (Node(platform="ios", model="3726"), ["model"]),
        (SWITCH, []),
        (Node(platform="ios", model="3750G", generation="hqf"), ["generation"]),
        (LINUX, []),
        (Node(platform="engine", model="3726"), ["model"]),
        (Node(platform="engine", model="3750G"), ["model"]),
    ],
)
def test_platform_accepts_its_node_keys(node: Node, keys: list[str]) -> None:
    assert [problem.key for problem in node_platform(node).check(node)] == keys


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_platform_provides_its_hardware(model: object) -> None:
    router = MODELS[model.name]  # type: ignore[attr-defined]
    own = router.hardware()
    assert own.generation == (router.default_generation or "classic")
    assert own.family == router.family
    assert own.interfaces == tuple(each.name for each in router.interfaces)
    for generation in router.generations:
        expected = SOFTWARE[generation] if router.own_software is None else router.own_software
        assert router.hardware(generation).version == expected.train


def test_router_of_the_article_has_its_image() -> None:
    # `System image file is "flash:…"`, in the form that a 2811 prints it.
    assert MODELS["2811"].image_file("hqf") == "c2800nm-adventerprisek9-mz.124-24.T2.bin"


@pytest.mark.parametrize(
    ("changed", "release", "message"),
    [
        ({}, "6.16.12-arch1-1", False),
        ({}, "6.17.0-5-generic", True),
        ({}, "7.0.0", True),
        ({"sack": False}, "6.18.44", False),
        ({"recovery": 1}, "6.18.44", False),
        ({}, "unknown", False),
    ],
)
def test_tcp_settings_ignored_by_a_kernel_are_reported(
    changed: dict[str, int | bool], release: str, message: bool
) -> None:
    profile = TCP_PROFILES["legacy-2008"].model_copy(update=changed)
    assert bool(settings_without_effect(profile, release)) == message
