"""Lets a fuzzer choose the input of a target of `targets`: `runner.py TARGET [options and corpora of libFuzzer]`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["qoslab", "ruamel", "jinja2"]):
    from targets import TARGETS


def main() -> None:
    """Run from the command line, which libFuzzer never returns from."""
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
