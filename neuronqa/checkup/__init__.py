"""One model of one's own, checked by the machinery that sweeps catalogs; nothing of it is kept as a verdict."""
