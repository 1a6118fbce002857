"""Interfaces to hardware and software image for show output; `platforms.ios` has the models."""

from __future__ import annotations

from typing import Protocol

from qoslab.model.generation import Generation


class InterfaceHardware(Protocol):
    """One physical interface."""

    @property
    def name(self) -> str:
        """Full name."""

    @property
    def chip(self) -> str:
        """Text after `Hardware is`."""

    @property
    def bandwidth_kbps(self) -> int:
        """Default of the `bandwidth` statement."""

    @property
    def delay_us(self) -> int:
        """Delay, printed after `DLY`."""


class Software(Protocol):
    """An IOS release."""

    @property
    def version(self) -> str:
        """Release, such as 12.4(15)T14."""

    @property
    def build(self) -> str:
        """Build, such as fc2."""

    @property
    def copyright_year(self) -> int:
        """Last year of the copyright."""

    @property
    def compilation_note(self) -> str:
        """Date and author of the compilation."""

    @property
    def train_name(self) -> str | None:
        """Train name of IOS-XE, such as Cupertino."""

    @property
    def xe_version(self) -> str | None:
        """Version of IOS-XE, such as 17.09.04a."""


class Chassis(Protocol):
    """A router."""

    @property
    def name(self) -> str:
        """The model's number."""

    @property
    def software_family(self) -> str:
        """Software family, such as 3700."""

    @property
    def image(self) -> str:
        """Image, such as C3725-ADVENTERPRISEK9-M."""

    @property
    def bootstrap(self) -> str:
        """Text after `ROM:`."""

    @property
    def chassis(self) -> str:
        """The line with model and memory."""

    @property
    def board_id(self) -> str:
        """Serial number."""

    @property
    def processor_lines(self) -> tuple[str, ...]:
        """Lines between board ID and interface counts."""

    @property
    def memory_lines(self) -> tuple[str, ...]:
        """Lines after the interface counts."""

    def interface(self, name: str) -> InterfaceHardware | None:
        """Return the interface with that full name."""

    @property
    def rom_lines(self) -> tuple[str, ...]:
        """Lines after the `ROM:` line."""

    @property
    def register(self) -> str:
        """The configuration register."""

    def image_file(self, generation: Generation) -> str:
        """Return the name of the image file in flash."""
