"""Devices under test: one protocol, the simulated `neuron` device, and any other PyTorch accelerator."""
