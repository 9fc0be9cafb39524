"""What the faults of `neuronqa.device.neuron.faults` do. Only a device child that was ordered one loads this."""
