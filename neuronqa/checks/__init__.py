"""Pure judgement: observations -> outcome and evidence. NumPy only; no device, no torch, no process, no I/O."""
