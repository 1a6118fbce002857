"""`device.learn("qos")`: classes, policies, where they are attached, and what they have counted."""
