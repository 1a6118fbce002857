"""Genie parsers for what classic IOS prints and Genie does not read.

`parsers` is a local parser package, as Genie calls it, and `ops` a local package of what `device.learn` learns: to
import them needs Genie, so nothing here does it. The texts are taken apart by plain modules next to them, which need
nothing.
"""

PACKAGE = "qoslab.genie.parsers"
"""The local parser package, for PYATS_LIBS_EXTERNAL_PARSER; an entry point in the group `genie.libs.parser`, too."""
OPS = "qoslab.genie.ops"
"""The local ops package, for PYATS_LIBS_EXTERNAL_OPS; an entry point in the group `genie.libs.ops`, too."""
