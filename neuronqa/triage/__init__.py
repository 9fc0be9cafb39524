"""Root causes: versioned keys, clusters, and what fixing them would unlock."""
