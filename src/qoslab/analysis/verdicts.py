"""Verdicts on expected and on published values."""

WITHIN = "within"
LOOSE = "loose bounds"
"""The value is within bounds that are too loose for a test (`Expectation.has_loose_bounds`): not counted as passed."""
OUTSIDE = "outside"
INFORMATIVE = "informative"
"""There is no expectation, or no valid cell."""
NOT_MEASURED = "not measured"
"""A run with less traffic than its file requests did not reach the measurement; it fails with `--strict` only."""
IMPOSSIBLE = "impossible"
"""The value is impossible: an error of the analysis or of a measurement, not of a router."""
UNDECIDED = "undecided"
"""Most of its cells are not valid or lack the value: neither passed nor failed."""


def is_undecided(counted: int, planned: int) -> bool:
    """Return whether fewer than half of the planned cells count."""
    return 2 * counted < planned


AS_PREDICTED = "as predicted"
"""The publication agrees with the model's prediction."""
NOT_REPRODUCED = "not reproduced"
"""The publication has another value than predicted."""
OWN_REFERENCE = "own reference"
"""The value is unpublished: the reference is a measurement of this project."""
FITTED = "fitted"
"""The publication agrees with the prediction, but a part of the model was fitted to it: no reproduction."""
