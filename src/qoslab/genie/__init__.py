"""Genie parsers for what classic IOS prints and Genie does not read.

`parsers` is a local parser package, as Genie calls it: importing it needs Genie, so nothing here does it. The texts are
taken apart by plain modules beside it, which need nothing.
"""

PACKAGE = "qoslab.genie.parsers"
"""The local parser package, for PYATS_LIBS_EXTERNAL_PARSER; an entry point in the group `genie.libs.parser`, too."""
