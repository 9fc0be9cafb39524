"""What the device must do, and the proof: behaviours, and PyTorch's own operator tests."""
