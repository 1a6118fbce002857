"""Genie parsers for output of classic IOS that Genie does not parse.

`parsers` is a local parser package, as Genie calls it, and `ops` a local package for `device.learn`. Importing them
needs Genie, so nothing here imports them. The plain modules next to them parse the texts and have no dependencies.
"""

PACKAGE = "qoslab.genie.parsers"
"""The local parser package, for PYATS_LIBS_EXTERNAL_PARSER; also an entry point in the group `genie.libs.parser`."""
OPS = "qoslab.genie.ops"
"""The local ops package, for PYATS_LIBS_EXTERNAL_OPS; also an entry point in the group `genie.libs.ops`."""
