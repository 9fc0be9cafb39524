"""A spec becomes something that runs: shrink, build, inputs, loss, keys.

Imports torch and transformers, so only child processes of the driver load it.
"""
