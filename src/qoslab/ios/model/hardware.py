"""Show output about the hardware and the software image; `platforms.ios` has the models."""

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
        """After `Hardware is`."""

    @property
    def bandwidth_kbps(self) -> int:
        """Default of the `bandwidth` statement."""

    @property
    def delay_us(self) -> int:
        """After `DLY`."""


class Software(Protocol):
    """An IOS release."""

    @property
    def version(self) -> str:
        """12.4(15)T14."""

    @property
    def build(self) -> str:
        """fc2."""

    @property
    def copyright_to(self) -> int:
        """The year."""

    @property
    def compiled(self) -> str:
        """Return when and by whom."""

    @property
    def train_name(self) -> str | None:
        """Return the train name of IOS-XE: Cupertino."""

    @property
    def xe_version(self) -> str | None:
        """Return the version of IOS-XE: 17.09.04a."""


class Chassis(Protocol):
    """A router."""

    @property
    def name(self) -> str:
        """The model's number."""

    @property
    def software_family(self) -> str:
        """3700."""

    @property
    def image(self) -> str:
        """C3725-ADVENTERPRISEK9-M."""

    @property
    def bootstrap(self) -> str:
        """The `ROM:` line after the colon."""

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
        """The interface of that full name."""

    @property
    def rom_lines(self) -> tuple[str, ...]:
        """Lines after the `ROM:` line."""

    @property
    def register(self) -> str:
        """The configuration register."""

    def image_file(self, generation: Generation) -> str:
        """The file in flash."""
