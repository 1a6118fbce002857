"""`device.learn("qos")`: classes, policies and their attachments and counters."""
