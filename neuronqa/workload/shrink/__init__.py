"""A config made small: the same graph, fewer and narrower layers.

Shrinking keeps what decides the graph (norms, attention kind and grouping, feed-forward and activation, experts and
routing, positions, the pattern of layers, tying, convolution geometry) and cuts what only costs time.
"""

from __future__ import annotations

import copy
from typing import Any

from neuronqa.workload.levels import Level, reach
from neuronqa.workload.shrink import depth, sizes, vocabulary, widths
from neuronqa.workload.tree import nodes


def shrink(config: dict[str, Any], level: Level) -> dict[str, Any]:
    """Return a smaller copy of a complete config (`to_dict()` of a config object, canonical field names)."""
    small = copy.deepcopy(config)
    if level is Level.FULL:
        return small
    tree = nodes(small)
    limits = reach(level)
    for node in tree:
        depth.cut(node, limits)
    vocabulary.cut(tree, limits)
    widths.narrow(tree, limits)
    for node in tree:
        sizes.cut_positions(node, limits)
        if limits.widths:
            sizes.cut_experts(node, limits)
        sizes.cut_queries(node, limits)
        sizes.cut_images(node, limits)
    sizes.fit_towers(tree[0], limits)
    sizes.fit_projections(nodes(config), tree)
    return small
