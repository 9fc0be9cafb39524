"""Snapshots of facts: from the Hub, from files, from the offline generator; selectors; verification."""
