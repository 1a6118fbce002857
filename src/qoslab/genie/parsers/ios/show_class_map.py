"""`show class-map`: Genie has this parser for IOS XE only."""

from genie.libs.parser.iosxe import show_class


class ShowClassMap(show_class.ShowClassMap):  # type: ignore[misc]
    """Parser for `show class-map [NAME]`, as for IOS XE."""
