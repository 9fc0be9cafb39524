"""The fix queue: agents take root causes and hand in kernels; nothing is believed that was not seen."""
