"""Configuration commands of a Catalyst 3750, one module a feature; `qoslab.ios.config` loads them all."""
