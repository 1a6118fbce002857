"""Output of `echo`."""

from __future__ import annotations

import pytest

from qoslab.system.printing import echo


def test_echo_is_a_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\x1b\x9f\u202eb")
    echo()
    echo(5, nl=False)
    echo("wrong", err=True)
    echo("!", err=True, nl=False)
    assert tuple(capsys.readouterr()) == ("a\\x1b\\x9f\\u202eb\n\n5", "wrong\n!")
