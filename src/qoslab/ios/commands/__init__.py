"""Configuration commands of routers, one module a feature; `qoslab.ios.config` loads them all."""
