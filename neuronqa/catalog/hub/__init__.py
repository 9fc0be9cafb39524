"""Pulling a catalog from the Hub: listing, triage, configs by commit, within the rates the Hub gives.

Only `neuronqa catalog pull` imports this package, because it imports huggingface_hub.
"""
