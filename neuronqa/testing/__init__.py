"""Test classes for those who bring something of their own: subclass one in your tests. Needs pytest."""

from neuronqa.testing.device_contract import DeviceContract

__all__ = ["DeviceContract"]
