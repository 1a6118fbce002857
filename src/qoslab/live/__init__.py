"""Live view of a run in any kind of lab, read from its folder: for terminals, browsers and monitoring.

The run itself is not queried, so it can be watched from another process, and also after it was interrupted.
"""
