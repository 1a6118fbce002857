"""Experiment files: valid input, and the message of each mistake."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from levels import example_count
from qoslab.errors import ExitStatus, ExperimentError
from qoslab.model.expectations import resolve_expectation
from qoslab.model.experiment import Configuration, Experiment
from qoslab.model.units import Duration, Rate
from qoslab.schema import (
    experiment_schema,
    load_experiment,
    parse_set,
    published_values,
    render_configuration,
)
from qoslab.schema.document import NODE_LIMIT, parse_document
from qoslab.schema.experiment_names import SIZE_LIMIT
from qoslab.schema.templates import render_lines

TOP = Path(__file__).parents[2]
EXPERIMENTS = sorted((TOP / "experiments").glob("*.yml"))
ARTICLE = TOP / "experiments" / "policing-vs-shaping.yml"
ERRORS = TOP / "tests" / "goldens" / "errors"


@pytest.mark.parametrize("name", sorted(path.stem for path in ERRORS.glob("*.yml")))
def test_schema_error_is_reported(
    name: str, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ERRORS)  # so that the goldens have short paths
    file = Path(f"{name}.yml")
    head = [line for line in file.read_text().splitlines() if line.startswith("# --set ")]
    sets = dict(parse_set(line.removeprefix("# --set ")) for line in head)
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file, sets)
    error = raised.value
    assert error.exit_status == ExitStatus.USER_MISTAKE
    assert error.findings, "each mistake is a finding"
    golden(ERRORS / f"{name}.txt", error.message + "\n")


def test_every_golden_has_an_input_file() -> None:
    assert {path.stem for path in ERRORS.glob("*.txt")} == {path.stem for path in ERRORS.glob("*.yml")}


@pytest.mark.sample(3)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda path: path.stem)
def test_shipped_experiments_are_valid(file: Path) -> None:
    experiment = load_experiment(file)
    assert experiment.name == file.stem
    again = Experiment.model_validate_json(experiment.model_dump_json())
    assert again == experiment, "what a run records can be read again"


@cache
def editor() -> Any:
    """Return an editor's findings with the schema, which is checked once."""
    from jsonschema import Draft202012Validator

    schema = experiment_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.sample(6)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda path: path.stem)
def test_editors_accept_experiments(file: Path) -> None:
    editor().validate(YAML(typ="safe", pure=True).load(file))
    assert file.read_text().startswith("# yaml-language-server: $schema=../docs/schema/experiment.schema.json\n")


@pytest.mark.parametrize("name", ["key-misspelt", "key-missing", "value-choice", "unit-missing", "tool-unknown"])
def test_editors_refuse_errors(name: str) -> None:
    from jsonschema import ValidationError

    data = YAML(typ="safe", pure=True).load(ERRORS / f"{name}.yml")
    with pytest.raises(ValidationError):
        editor().validate(data)


def test_every_key_has_a_description() -> None:
    schema = experiment_schema()
    for owner in (schema, *schema["$defs"].values()):
        assert owner["description"]
        for key, value in owner["properties"].items():
            assert value.get("description"), key


def test_overrides_can_change_every_key() -> None:
    experiment = load_experiment(
        ARTICLE,
        {
            "R1.platform": "engine",
            "R1.model": "2811",
            "duration": "10s",
            "topology.links.wan.rate": "10 Mb/s",
            "topology.links.0.delay": "5 ms",
            "arms.policed.configure.R1.variables.cir": "2000000",
            "arms.shaped.tcp": "{congestion_control: reno, sack: false}",
            "observe.0.when": "[after]",
        },
    )
    R1 = experiment.topology.nodes["R1"]  # noqa: N806 - a router's name
    assert (R1.platform, R1.model) == ("engine", "2811")
    assert experiment.duration == Duration.parse("10 s")
    assert [link.rate for link in experiment.topology.links] == [Rate.parse("100 Mb/s"), Rate.parse("10 Mb/s")]
    assert experiment.topology.links[0].delay == Duration.parse("5 ms")
    assert experiment.arm("policed").configure["R1"].variables["cir"] == 2_000_000
    assert experiment.arm_tcp_profile(experiment.arm("shaped")).sack is False
    assert experiment.observe[0].when == ("after",)


def test_overrides_accept_names_with_dots(tmp_path: Path) -> None:
    text = (ERRORS / "set-path.yml").read_text().replace("R1", "R1.edge")
    file = tmp_path / "dots.yml"
    file.write_text(text)
    for folder in ("templates", "published"):
        shutil.copytree(ERRORS / folder, tmp_path / folder)
    assert load_experiment(file, {"R1.edge.generation": "hqf"}).topology.nodes["R1.edge"].generation == "hqf"


@pytest.mark.parametrize("text", ["", "duration", "=5 s", "duration=", "  =  "])
def test_set_requires_path_and_value(text: str) -> None:
    with pytest.raises(ExperimentError, match="expected PATH=VALUE"):
        parse_set(text)


def test_aliases_are_followed_up_to_a_limit() -> None:
    document = parse_document("a: &x {b: 1}\nc: *x\n", "f")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    bomb = "a0: &a0 [0,0,0,0,0,0,0,0,0,0]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(ExperimentError, match=str(NODE_LIMIT)):
        parse_document(bomb, "f")


def test_alias_to_itself_is_refused() -> None:
    with pytest.raises(ExperimentError, match="its own parent"):
        parse_document("a: &x [*x]\n", "f")


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "value",
    ["[" * 500 + "]" * 500, "{a: " * 400 + "}" * 400, "[" * 400 + "]" * 400, "1" * 5000, '"\\ud800"', "1e999"],
    ids=["very deep", "mappings", "lists", "long number", "surrogate", "infinite"],
)
@pytest.mark.parametrize("key", ["name", "seed", "arms", "colour"])
def test_hostile_values_are_refused(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "f.yml"
    file.write_text(f"title: x\n{key}: {value}\n")
    with pytest.raises(ExperimentError) as raised:
        load_experiment(file)
    assert raised.value.findings
    raised.value.message.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a: \xff\n", r"f\.yml:1:4: found the byte 0xff"), (b"#" * (SIZE_LIMIT + 1), "at most")],
)
def test_unreadable_file_is_reported(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "f.yml"
    file.write_bytes(content)
    with pytest.raises(ExperimentError, match=message):
        load_experiment(file)


def test_missing_file_suggests_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "policing.yml").touch()
    with pytest.raises(ExperimentError) as raised:
        load_experiment(tmp_path / "polcing.yml")
    assert "policing.yml" in raised.value.hint


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("10 s")
names = st.sampled_from(
    ["name", "title", "topology", "nodes", "links", "ends", "tcp", "arms", "traffic", "duration", "0"]
)
trees = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4))


@given(st.dictionaries(names, trees))
def test_any_value_is_accepted_or_a_finding(tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yml"
    file.write_text(json.dumps(data).replace("NaN", ".nan").replace("Infinity", ".inf"), encoding="utf-8")
    with pytest.raises(ExperimentError):
        load_experiment(file)


@given(st.text(max_size=40))
def test_any_text_is_accepted_or_a_finding(text: str) -> None:
    try:
        parse_document(text, "f")
    except ExperimentError as error:
        assert error.message


def test_template_renders_to_its_configuration() -> None:
    experiment = load_experiment(ARTICLE)
    text = render_configuration(ARTICLE, experiment.arm("policed").configure["R1"])
    assert text == (
        "policy-map Police\n class class-default\n  police cir 1000000\n!\n"
        "interface FastEthernet0/1\n service-policy output Police\n"
    )


def test_undefined_variable_is_reported_with_its_line() -> None:
    configuration = Configuration(template="templates/police.ios.j2", variables={"cir": 1})
    with pytest.raises(ExperimentError, match=r"police\.ios\.j2:5:1: .*'interface' is undefined"):
        render_configuration(ARTICLE, configuration)


def test_published_values_of_the_article_are_read() -> None:
    experiment = load_experiment(ARTICLE)
    assert experiment.compare is not None
    rows = published_values(ARTICLE, experiment)
    values = {(row.arm, row.metric): row for row in rows}
    assert values["policed", "goodput.sum"].value == 841_000
    assert values["shaped/policed", "goodput.sum"].unit == "ratio"
    outside = []
    for each in experiment.compare.expectations:
        for expectation in resolve_expectation(each, experiment.compare.quantities, [{}], experiment.duration):
            published = values.get((expectation.arm, expectation.metric))
            if published is not None and not expectation.is_within_bounds(
                published.value, uncertain=published.resolution / 2
            ):
                outside.append(expectation.metric)
    assert outside == [
        "police.conformed_packets @ conformed_bytes 1992832 B",
        "police.conformed_rate @ conformed_bytes 1992832 B",
        "shape.queue_depth.during @ time 5.7 s",
        "shape.sent_packets @ time 5.7 s",
        "class.bytes @ time 5.7 s",
        "class.packets @ time 5.7 s",
        "class.offered.during @ time 5.7 s",
    ], "all others are as predicted"


@settings(max_examples=example_count(100), deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                *("a", " b {{ x }} c", "{% if y %}", "  {% if not y %}", "{% endif %}", "{# note #}", "{# of\n two #}"),
                *("", "!", "{% for i in [1, 2] %}", " line {{ i }}", "{% endfor %}", "{{ x }}", "  {{ x }}{{ x }}"),
                "{% include 'inner.j2' %}",
            ]
        ),
        max_size=12,
    ),
    y=st.booleans(),
)
def test_lines_of_a_template_keep_their_places(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], y: bool
) -> None:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "inner.j2").write_text("inner {{ x }}\n second\n")
    (folder / "t.j2").write_text("\n".join(pieces) + "\n")
    configuration = Configuration(template="t.j2", variables={"x": "X", "y": y})
    try:
        text = render_configuration(folder / "e.yml", configuration)
    except ExperimentError:
        return
    lines = render_lines(folder / "e.yml", configuration)
    assert [line for line, _ in lines] == text.splitlines()
    sources = {str(folder / name): (folder / name).read_text().splitlines() for name in ("t.j2", "inner.j2")}
    for line, place in lines:
        if line.strip() and "{" not in "".join(pieces):
            assert sources[place.file][place.line - 1] == line
        for word in ("inner", "second", "a", " b "):
            if line.startswith(word):
                assert word in sources[place.file][place.line - 1]


def test_changed_result_does_not_affect_the_cached_text() -> None:
    text = "a: [1, {b: 2}]\na: 3\n"
    first = parse_document(text, "f")
    first.data["a"][1]["b"] = 9
    first.values.clear()
    first.keys.clear()
    first.findings.clear()
    again = parse_document(text, "f")
    assert again.data == {"a": [1, {"b": 2}]}
    assert again.values and again.keys and len(again.findings) == 1
    assert again.place(("a", 0)).file == "f" and parse_document(text, "g").place(("a", 0)).file == "g"
