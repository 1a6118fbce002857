"""Secrets that a run knows are hidden wherever they stand."""

from __future__ import annotations

from qoslab.run.redaction import Redaction


def test_known_secrets_are_hidden_and_words_that_look_like_them_stay() -> None:
    redaction = Redaction(["correct horse", "lab", None, ""])
    assert redaction.masked("it said: xcorrect horsex") == "it said: x<removed>x"
    # A short one only where it stands alone: it would tear words apart.
    assert redaction.masked("lab labels a label: lab") == "<removed> labels a label: <removed>"


def test_ios_secrets_are_hidden_that_nobody_named() -> None:
    assert Redaction().masked("line\nenable secret 5 $1$abcd$efgh\n") == "line\nenable secret 5 <removed>\n"


def test_the_longer_of_two_that_begin_alike_goes_as_a_whole() -> None:
    assert Redaction(["swordfish", "swordfish-2"]).masked("swordfish-2 swordfish") == "<removed> <removed>"
