"""A run while it goes on, read from its folder, in any kind of lab: for terminals, browsers and monitoring.

Nothing is asked of the run itself, so that it can be watched from elsewhere, and also after it broke off.
"""
