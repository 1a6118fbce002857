"""A weakness that was mended: what it may lead to, and the change that takes its mend back."""

from __future__ import annotations

from dataclasses import dataclass

CODE = "reading what others wrote does something for them"
NO_END = "reading what others wrote takes time or memory without end"
MISTAKEN = "what others wrote is told as a defect of qoslab"
LET_IN = "others are let in, or get more than they are given"
RIGHTS = "a program has rights that it does not need"
SECRETS = "secrets of devices lie open"
DAMAGE = "what is damaged passes for a result"
FOREIGN = "what was measured otherwise passes for a result of these"
FAULT = "a fault takes more with it than its cell, or is told as another"
INSTALLED = "what is installed is not what was meant, or half of it"
LEFT = "a device or a host of a lab is not left as it was found"
FIGURES = "a model does something else than the device"
DANGERS = (CODE, NO_END, MISTAKEN, LET_IN, RIGHTS, SECRETS, DAMAGE, FOREIGN, FAULT, INSTALLED, LEFT, FIGURES)
"""What a weakness may lead to; `take_back.py --dangers` counts the mends that stand against each."""


@dataclass(frozen=True)
class Mend:
    """What was wrong once, and a change of one place that makes it wrong again."""

    weakness: str
    path: str
    mended: str
    before: str
    tests: str
    """For pytest; or a crate and a test's name, as `crate:name`, for cargo."""
    danger: str = ""
    """One of `DANGERS`; empty where it is of the checks themselves."""
    also: tuple[tuple[str, str], ...] = ()
    """Further changes of that file, where one mend stands behind another."""

    def taken_back(self, text: str) -> str:
        """The file as it was before. `ValueError` where it has another text by now."""
        for mended, before in ((self.mended, self.before), *self.also):
            if text.count(mended) != 1:
                raise ValueError(f"{self.path} has {text.count(mended)} times, expected once: {mended}")
            text = text.replace(mended, before)
        return text
