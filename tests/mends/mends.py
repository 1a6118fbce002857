"""The mends of weaknesses, each with a change that takes it back and the tests that notice.

What is not here: that all fuzz targets compile. They are a crate of the workspace, which `cargo test` builds.
"""

from __future__ import annotations

from faults import FAULTS
from people import PEOPLE
from reading import READING
from results import RESULTS

MENDS = (*READING, *PEOPLE, *RESULTS, *FAULTS)
