"""Known secrets of a run: they are hidden in every output."""

from __future__ import annotations

import json

from qoslab.results.redaction import Redaction


def test_known_values_are_hidden_and_similar_words_stay() -> None:
    redaction = Redaction(["correct horse", "lab", None, ""])
    assert redaction.mask("it said: xcorrect horsex") == "it said: x<removed>x"
    # A short secret only where a secret stands: hosts and arms may have the same name.
    text = 'host lab: {"password": "lab", "labels": "lab"} Password: lab secret=label'
    assert redaction.hidden(text) == text.replace('"password": "lab"', '"password": "<removed>"').replace(
        "Password: lab", "Password: <removed>"
    )


def test_redacted_json_stays_valid() -> None:
    data = {"message": 'the password "quo"ted-word" was refused', "secret key": "plain-word-9"}
    shown = Redaction(['quo"ted-word', "plain-word-9"]).hidden(json.dumps(data))
    assert json.loads(shown) == {"message": 'the password "<removed>" was refused', "secret key": "<removed>"}


def test_unlisted_ios_secrets_are_hidden() -> None:
    assert Redaction().mask("line\nenable secret 5 $1$abcd$efgh\n") == "line\nenable secret 5 <removed>\n"


def test_longer_secret_with_a_common_prefix_is_hidden_completely() -> None:
    assert Redaction(["swordfish", "swordfish-2"]).mask("swordfish-2 swordfish") == "<removed> <removed>"


def test_earlier_secrets_stay_hidden() -> None:
    redaction = Redaction(["correct horse"])
    redaction.know("battery staple")
    redaction.know(None, "")
    assert redaction.values == {"correct horse", "battery staple"}
    assert redaction.hidden("correct horse, battery staple") == "<removed>, <removed>"


def test_long_secret_is_hidden_inside_words() -> None:
    redaction = Redaction(["1234567", "abcdefg", "87654321"])
    assert redaction.hidden("x1234567 abcdefg x87654321x") == "x1234567 abcdefg x<removed>x"
    assert redaction.hidden("key 1234567, key abcdefg") == "key <removed>, key <removed>"
