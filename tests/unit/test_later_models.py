"""Router models with IOS 15 and IOS-XE: interface names, releases, and output parsed by Genie."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from qoslab.genie.show_parser import parse
from qoslab.ios.model.device import Device
from qoslab.ios.model.ios_names import interface_name, short_name
from qoslab.ios.show.system import show_version
from qoslab.model.experiment import Node
from qoslab.platforms import MODELS, node_platform

LATER = [name for name, model in MODELS.items() if model.family == "router" and model.own_software is not None]
XE = [name for name in LATER if MODELS[name].generations == ("ios-xe",)]
NOW = datetime(2026, 1, 2, 3, 4, 5)


def version_of(name: str) -> str:
    model = MODELS[name]
    device = Device(model.hardware(), hostname="R1")
    software = model.software(device.generation)
    booted = NOW - timedelta(hours=2)
    return show_version(device, model, software, now=NOW, booted=booted, reloaded=False)


@pytest.mark.parametrize("name", LATER)
def test_interface_names_are_known(name: str) -> None:
    interfaces = [each.name for each in MODELS[name].interfaces]
    assert len(interfaces) > 1
    for each in interfaces:
        assert interface_name(each) == each
        assert each.startswith(("Gigabit", "TenGigabit"))
    assert len({short_name(each) for each in interfaces}) == len(interfaces)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", XE)
def test_genie_parses_show_version(name: str) -> None:
    text = version_of(name)
    parsed: Any = parse("iosxe", "show version", text).parsed
    found = parsed["version"]
    model = MODELS[name]
    assert found["version"] == model.software("ios-xe").version
    assert found["xe_version"] == model.software("ios-xe").xe_version
    assert found["hostname"] == "R1"
    assert found["os"] == "IOS-XE"
    assert found["chassis"].upper().startswith(name.partition("-")[0].upper())


@pytest.mark.parametrize(
    ("name", "release", "train", "image"),
    [
        ("ISR4451", "16.6.5", "16.6", "isr4400-universalk9.16.06.05.SPA.bin"),
        ("C8000V", "17.9.4a", "17.9", "c8000v-universalk9.17.09.04a.SPA.bin"),
        ("2911", "15.7(3)M8", "15.7", "c2900-universalk9-mz.SPA.157-3.M8.bin"),
    ],
)
def test_models_have_release_train_and_image(name: str, release: str, train: str, image: str) -> None:
    model = MODELS[name]
    generation = model.generations[0]
    assert model.software(generation).version == release
    assert model.hardware().version == train
    assert model.image_file(generation) == image


@pytest.mark.parametrize(
    ("model", "generation", "refused"),
    [
        ("ISR4451", None, False),
        ("ISR4451", "ios-xe", False),
        ("ISR4451", "hqf", True),
        ("2811", "ios-xe", True),
        ("2911", "classic", True),
        ("2911", "hqf", False),
    ],
)
def test_model_has_its_generations_only(model: str, generation: Any, refused: bool) -> None:
    node = Node(platform="ios", model=model, generation=generation)
    problems = list(node_platform(node).check(node))
    assert bool(problems) == refused
    assert all("generation" in str(each) for each in problems)
