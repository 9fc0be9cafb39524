"""`torch.compile(backend="neuron")`: what is captured, what is refused, and how a graph runs."""
