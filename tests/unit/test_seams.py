"""Kinds of nodes and of labs are objects with methods; only their registries compare their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from qoslab.ios.model.generations import GENERATIONS
from qoslab.lab_kinds import LABS
from qoslab.platforms import MODELS, PLATFORMS
from qoslab.run.workers import lab_machinery
from qoslab.run.workers.base import LabMachinery
from qoslab.traffic import THIRD_PARTY_PROGRAMS, TOOLS

PACKAGE = Path(__file__).parents[2] / "src" / "qoslab"


@dataclass(frozen=True)
class Seam:
    """Registry, and the pattern of a comparison of its words."""

    folder: str
    """Folder in which they may be compared."""
    names: frozenset[str]
    """Variables, attributes and constants that hold one of the words and must not be compared."""
    words: frozenset[str]
    """Words of the registry."""
    classes: frozenset[str] = frozenset()
    """Types that no other module uses."""

    def occurs_in(self, text: str) -> bool:
        """Return whether a file has any of the names, or a string that is a word: parsing others would take seconds."""
        strings = re.findall(r"[\"']([\w-]+)[\"']", text)
        return not (self.words.isdisjoint(strings) and (self.names | self.classes).isdisjoint(re.findall(r"\w+", text)))


PLATFORM = Seam(
    "platforms",
    names=frozenset({"platform"}),
    # `host` is also a column, a key of addresses and an IOS keyword; `tc` is also a program and a language.
    words=frozenset(PLATFORMS) - {"host", "tc"},
    classes=frozenset(type(platform).__name__ for platform in PLATFORMS.values()),
)

TOOL = Seam(
    "traffic",
    names=frozenset(),  # a cell may ask which tools it uses
    words=frozenset(THIRD_PARTY_PROGRAMS),  # `flood` is also the name of one of our programs
    classes=frozenset(type(tool).__name__ for tool in TOOLS.values()),
)

LAB = Seam(
    "lab_kinds",
    names=frozenset({"DEFAULT_LAB"}),  # `lab` may be compared with another cell's, and with None
    words=frozenset(LABS),
    classes=frozenset(type(kind).__name__ for kind in LABS.values()),
)


GENERATION = Seam("ios/model", names=frozenset(), words=frozenset(GENERATIONS))
"""Generation names, compared nowhere: commands require capabilities of `qoslab.ios.model.generations`, rules ask for
properties.
"""
RELEASES = {"ios/model/generations.py", "ios/model/engine_rules.py", "platforms/ios_model.py"}
"""Files with a table by generation: its description, and the release that a virtual router reports."""


COMPARING = (ast.Compare, ast.Match, ast.MatchValue, ast.Dict, ast.Subscript, ast.Call)
"""Kinds of nodes of a syntax tree that `compared_at` recognises."""


def comparisons(tree: ast.AST, seam: Seam) -> Iterator[int]:
    """Yield the lines that compare, look up, match or distinguish by type."""
    for node in ast.walk(tree):
        if isinstance(node, COMPARING):
            yield from compared_at(node, seam)


def compared_at(node: ast.AST, seam: Seam) -> Iterator[int]:
    """Return the line of a node if it compares words of `seam`."""
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
        case ast.Match(subject=subject):
            sides = [subject]
        case ast.MatchValue(value=value):
            sides = [value]
        case ast.Dict(keys=found):
            # A table indexed by the words is a separate registry.
            sides = [key for key in found if key is not None]
        case ast.Subscript(slice=ast.Attribute() | ast.Name() as key, ctx=ast.Load()):
            # `{"ios": …}[node.platform]` is a comparison too.
            sides = [key]
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, types]):
            if any(isinstance(each, ast.Name) and each.id in seam.classes for each in ast.walk(types)):
                yield node.lineno
            return
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "get" as called), args=args, keywords=[]):
            sides = args[:1] if called == "get" else [node.func.value]  # type: ignore[attr-defined]
            sides = [side for side in sides if not isinstance(side, ast.Constant)]
        case _:
            return
    if any(_compares_words(side, seam) for side in sides):
        yield node.lineno


def _compares_words(side: ast.AST, seam: Seam) -> bool:
    match side:
        case ast.Attribute(value=ast.Name(id=owner), attr="name"):
            return owner in seam.classes
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in seam.names
        case ast.Constant(value=str(word)):
            return word in seam.words
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(_compares_words(each, seam) for each in elements)
        case ast.Call(func=ast.Name(id="str" | "frozenset" | "set"), args=[inner]):
            return _compares_words(inner, seam)
        case _:
            return False


SEAMS = (PLATFORM, LAB, TOOL, GENERATION)


@cache
def comparison_places() -> tuple[list[set[str]], set[str]]:
    """Return the places at which files of the package compare words of each of `SEAMS` outside its folder, and name
    models.
    """
    compared: list[set[str]] = [set() for _ in SEAMS]
    naming = set()
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE)
        text = file.read_text(encoding="utf-8")
        pairs = zip(SEAMS, compared, strict=True)
        asked = [pair for pair in pairs if name.parts[0] != pair[0].folder and pair[0].occurs_in(text)]
        if not asked and not any(model in text for model in MODELS):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        naming |= {f"{name}:{node.lineno}" for node in nodes if isinstance(node, ast.Constant) and node.value in MODELS}
        examined = [node for node in nodes if isinstance(node, COMPARING)]
        for seam, found in asked:
            found |= {f"{name}:{line}" for node in examined for line in compared_at(node, seam)}
    return compared, naming


@pytest.mark.parametrize("seam", [PLATFORM, LAB, TOOL], ids=lambda seam: seam.folder)
def test_only_registries_compare_their_words(seam: Seam) -> None:
    assert not comparison_places()[0][SEAMS.index(seam)], f"ask the value in qoslab.{seam.folder} instead"


def test_name_of_a_generation_is_compared_nowhere() -> None:
    found = {
        place for place in comparison_places()[0][SEAMS.index(GENERATION)] if place.rpartition(":")[0] not in RELEASES
    }
    assert not found, "ask for a property or capability of the generation instead"


def test_models_are_named_in_one_file() -> None:
    naming = comparison_places()[1]
    elsewhere = {place for place in naming if not place.startswith("platforms/hardware_models.py:")}
    assert not elsewhere, "ask for a property or feature of the model instead"
    assert len(naming) >= len(MODELS)


def test_models_inherit_properties() -> None:
    child = MODELS["C8300"]
    parent = MODELS[child.parent or ""]
    assert (child.software_family, child.image_name) == (parent.software_family, parent.image_name)
    assert child.features == parent.features == {"mqc"}
    assert child.represented_models != parent.represented_models


def test_engine_uses_generation_names_in_one_file() -> None:
    compiler = PACKAGE.parents[1] / "crates/qos-core/src/compile"
    naming = {
        file.name for file in compiler.glob("*.rs") if "Generation::" in file.read_text().partition("mod tests")[0]
    }
    assert naming == {"generation.rs"}


def test_every_kind_of_lab_has_a_worker() -> None:
    for kind in LABS.values():
        found = lab_machinery(kind)
        assert isinstance(found, LabMachinery)
        # The measuring workers are looked up when a run begins: there may be none here.
        assert kind.real_time or set(found.versions("", None))  # type: ignore[arg-type]
