"""The simulated AWS Neuron device: a PrivateUse1 backend that fails as documented, from profiles, never from chance."""
