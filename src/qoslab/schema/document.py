"""Plain values of a YAML file, with the place of every key and value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from qoslab.errors import ExperimentError, Finding
from qoslab.model.matrix import WORK_LIMIT
from qoslab.schema.experiment_names import DEPTH_LIMIT, SIZE_LIMIT
from qoslab.schema.named_files import FileRefusedError, read_bytes

Step: TypeAlias = str | int
Steps: TypeAlias = tuple[Step, ...]
"""Path of a value: keys of mappings, indices of lists."""

NODE_LIMIT = 20_000
"""Maximum number of values after aliases are resolved, so that a few lines of nested aliases cannot fill the memory."""
LARGEST = 2**63 - 1
"""Greatest whole number without a unit."""

_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = frozenset({f"{_TAG}map", f"{_TAG}seq"})
"""Tags of lists and mappings."""
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that show the text around them in another order (Unicode Standard Annex 9)."""


@dataclass(frozen=True)
class Place:
    """Source of a key or value: a file, or a command-line option."""

    file: str = ""
    line: int = 0
    column: int = 0
    option: str = ""

    def finding(self, path: str, message: str, hint: str = "") -> Finding:
        """Return a finding at this place."""
        return Finding(self.file, self.line, self.column, self.option, path, message, hint)


@dataclass
class FileChecks:
    """Checks of a file that run once for all its combinations."""

    found: dict[Any, list[Finding]] = field(default_factory=dict)
    """Findings by check."""
    work: int = 0


@dataclass
class Document:
    """Plain values (dict, list, str, int, float, bool, None) and their places."""

    file: str
    data: Any = None
    values: dict[Steps, Place] = field(default_factory=dict)
    keys: dict[Steps, Place] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    """Errors that YAML allows and qoslab does not, such as duplicate keys."""
    work: FileChecks = field(default_factory=FileChecks)
    """Checks of the file, shared by all documents into which its values are filled."""

    def get(self, steps: Iterable[Step]) -> Any:
        """Return the value at a path. Raise `KeyError` or `IndexError` if there is none."""
        value = self.data
        for step in steps:
            value = value[step]
        return value

    def place(self, steps: Steps) -> Place:
        """Return the place of the value, or of the nearest value around it."""
        while steps and steps not in self.values:
            steps = steps[:-1]
        return self.values.get(steps, Place(self.file))

    def key_place(self, steps: Steps) -> Place:
        """Return the place of the value's key."""
        return self.keys.get(steps) or self.place(steps)

    def path(self, steps: Steps) -> str:
        """Return a path in the notation of users: `topology.links.wan.rate`; list items by name if they have one, else
        `[2]`.
        """
        text, value = "", self.data
        for step in steps:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                value = None
            if isinstance(step, int):
                name = value.get("name") if isinstance(value, dict) else None
                text += f".{name}" if isinstance(name, str) and name else f"[{step}]"
            else:
                text += f".{step}"
        return text.removeprefix(".")

    def count_work(self, steps: Steps, work: int) -> None:
        """Count the values that are examined for combinations. Raise `ExperimentError` above the limit."""
        self.work.work += work
        if self.work.work > WORK_LIMIT:
            message = f"found more than {WORK_LIMIT} comparisons and words to check for all combinations"
            hint = "give fewer values, fewer expectations or shorter expressions, or several files"
            raise ExperimentError(findings=[self.finding(steps, f"{message} in the file, expected fewer", hint)])

    def finding(self, steps: Steps, message: str, hint: str = "", *, at_key: bool = False) -> Finding:
        """Return a finding about the value at a path."""
        place = self.key_place(steps) if at_key else self.place(steps)
        return place.finding(self.path(steps), message, hint)


def read_document(path: Path) -> Document:
    """Read a YAML file. Raise `ExperimentError` if it cannot be read or is not YAML."""
    file = str(path)
    try:
        raw = read_bytes(path, SIZE_LIMIT)
    except FileRefusedError as error:
        raise ExperimentError(
            f"{file}: {error.message}, expected an experiment of at most {SIZE_LIMIT} bytes"
        ) from error
    except OSError as error:
        found = "found a folder, expected a file" if isinstance(error, IsADirectoryError) else error.strerror
        raise ExperimentError(f"{file}: {found}") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        place = Place(file, line, column)
        finding = place.finding("", f"found the byte 0x{raw[error.start]:02x}, expected text in UTF-8")
        raise ExperimentError(findings=[finding]) from error
    return parse_document(text, file)


def _yaml_hint(problem: str) -> str:
    """Return advice on an error of the YAML parser, whose words name tokens instead of the mistake."""
    if r"'\t'" in problem:
        return "indent with spaces, not tabs"
    if "<block end>" in problem or "mapping values are not allowed" in problem:
        return "check the indentation: keys of one level start in the same column"
    return ""


def parse_document(text: str, file: str) -> Document:
    """Parse YAML text; `file` names it in findings. Raise `ExperimentError` if it is too large or not YAML."""
    if len(text) > SIZE_LIMIT:
        message = f"found {len(text)} characters, expected at most {SIZE_LIMIT}"
        raise ExperimentError(findings=[Place(file).finding("", message)])
    found = _parse_shared(text, file)
    return Document(file, deepcopy(found.data), dict(found.values), dict(found.keys), list(found.findings))


@lru_cache(64)
def _parse_shared(text: str, file: str) -> Document:
    """Return a shared document, which callers must not change. Reading YAML takes ten times as long as the rest of the
    check.
    """
    document = Document(file)
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        problem = " ".join(filter(None, (error.context, error.problem)))
        hint = _yaml_hint(problem)
        raise ExperimentError(findings=[place.finding("", f"not valid YAML: {problem}", hint)]) from error
    except ReaderError as error:
        line, column = text.count("\n", 0, error.position) + 1, error.position - text.rfind("\n", 0, error.position)
        message = f"not valid YAML: found the character U+{error.character:04X}, expected printable text"
        raise ExperimentError(findings=[Place(file, line, column).finding("", message)]) from error
    except YAMLError as error:
        raise ExperimentError(findings=[Place(file).finding("", f"not valid YAML: {error}")]) from error
    except RecursionError as error:
        message = f"found values nested too deeply, expected at most {DEPTH_LIMIT} levels"
        raise ExperimentError(findings=[Place(file).finding("", message)]) from error
    if root is not None:
        document.data = _Reader(document, yaml).read(root, (), frozenset())
    return document


def parse_value(text: str, option: str) -> Any:
    """Return the value of a command-line option in YAML. Raise `ExperimentError` if it is not YAML."""
    try:
        document = parse_document(text, option)
    except ExperimentError as error:
        problem = "; ".join(finding.message for finding in error.findings) or error.message
        raise ExperimentError(findings=[Place(option=option).finding("", problem)]) from error
    if document.findings:
        raise ExperimentError(findings=[Place(option=option).finding("", document.findings[0].message)])
    return document.data


class _Reader:
    """Converter of YAML nodes to plain values, with places and findings."""

    def __init__(self, document: Document, yaml: YAML) -> None:
        self.document = document
        self.yaml = yaml
        self.count = 0

    def place(self, node: Node) -> Place:
        return Place(self.document.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def read(self, node: Node, steps: Steps, around: frozenset[int]) -> Any:
        self.count += 1
        if self.count > NODE_LIMIT:
            raise ExperimentError(
                findings=[self.place(node).finding("", f"found more than {NODE_LIMIT} values, expected fewer")]
            )
        if len(steps) > DEPTH_LIMIT:
            message = f"found values nested too deeply, expected at most {DEPTH_LIMIT} levels"
            raise ExperimentError(findings=[self.place(node).finding("", message)])
        # For an alias this is the anchor's place, which is what must be fixed.
        self.document.values[steps] = self.place(node)
        if id(node) in around:
            raise ExperimentError(findings=[self.place(node).finding("", "found an alias to its own parent")])
        if not isinstance(node, ScalarNode) and node.tag not in _COLLECTIONS:
            self.note(self.place(node), steps, f"found the tag {node.tag}, expected a plain list or mapping")
        inside = around | {id(node)}
        if isinstance(node, MappingNode):
            return self.mapping(node, steps, inside)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*steps, index), inside) for index, item in enumerate(node.value)]
        return self.scalar(node, steps)

    def mapping(self, node: MappingNode, steps: Steps, inside: frozenset[int]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self.place(key_node)
            if not isinstance(key_node, ScalarNode):
                self.note(place, steps, "found a key that is a list or mapping, expected a word")
                continue
            key = self.text(key_node, steps)
            if key_node.tag == _TAG + "merge":
                self.note(place, steps, "found the merge key <<, expected every key to be written out")
                continue
            here = (*steps, key)
            if key in result:
                first = self.document.keys[here]
                self.note(
                    place,
                    here,
                    f'found the key "{key}" a second time, expected it once; '
                    f"the first is at {first.file}:{first.line}:{first.column}",
                )
                continue
            self.document.keys[here] = place
            result[key] = self.read(value_node, here, inside)
            if result[key] is None and not value_node.value:
                self.document.values[here] = place  # an absent value has no place
        return result

    def scalar(self, node: Node, steps: Steps) -> Any:
        text = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        if kind in ("int", "float", "bool", "null"):
            try:
                value = self.yaml.constructor.construct_object(node)
            except ValueError:  # Python refuses to read numbers of thousands of digits
                self.note(self.place(node), steps, "found a number that cannot be read, expected a shorter one")
                return None
            if kind == "int" and abs(value) > LARGEST:
                self.note(self.place(node), steps, f"found a number above {LARGEST}, expected a smaller one")
                return None
            # A leading zero is octal to some readers and decimal to others.
            if kind == "int" and len(text.lstrip("+-")) > 1 and text.lstrip("+-").startswith("0"):
                self.note(self.place(node), steps, f"found {text}, expected a decimal number without leading zeros")
            return value
        if kind not in ("str", "timestamp"):
            self.note(self.place(node), steps, f"found the tag {node.tag}, expected a plain value")
        return self.text(node, steps)

    def text(self, node: Node, steps: Steps) -> str:
        """Return the text at that place, if it can be written in UTF-8 again."""
        text = str(node.value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            character = ord(text[error.start])
            self.note(self.place(node), steps, f"found \\u{character:04x}, which is not a character, expected text")
            return text.encode(errors="replace").decode()
        if (found := _REORDERING.search(text)) is not None:
            message = f"found the invisible character U+{ord(found[0]):04X}, which reorders text; expected none"
            self.note(self.place(node), steps, message)
        return text

    def note(self, place: Place, steps: Steps, message: str) -> None:
        # The data is still being read, so list items have no names yet and are given by index.
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
        self.document.findings.append(place.finding(path, message))
