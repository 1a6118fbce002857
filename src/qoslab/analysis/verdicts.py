"""What an expected figure came to."""

WITHIN = "within"
OUTSIDE = "outside"
INFORMATIVE = "informative"
"""Nothing is expected of it, or no valid cell tells."""
