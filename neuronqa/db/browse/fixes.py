"""Items of the fix queue, as a listing."""

from __future__ import annotations

from sqlalchemy import func, select

from neuronqa.db import fix_tables as ft
from neuronqa.db.browse.listing import Listing, Sort
from neuronqa.db.columns import escape


def listing() -> Listing:
    """Items, newest first, with who holds them."""
    item, lease = ft.fix_item.c, ft.fix_lease.c
    holder = select(lease.agent).where(lease.live_item_id == item.id).correlate(ft.fix_item).scalar_subquery()
    handed = (
        select(func.count())
        .where(ft.fix_submission.c.item_id == item.id)
        .correlate(ft.fix_item)
        .scalar_subquery()
        .label("submissions")
    )
    rows = select(
        item.id,
        item.title,
        item.operator,
        item.state,
        holder.label("held_by"),
        item.lane,
        item.entries,
        item.downloads,
        handed,
        item.rejections,
        item.cluster_id,
        item.made,
    ).select_from(ft.fix_item)
    return Listing(
        name="queue",
        rows=rows,
        key=item.id,
        sorts={
            "id": Sort(column=item.id, descending=True),
            "entries": Sort(column=item.entries, descending=True),
            "rejections": Sort(column=item.rejections, descending=True),
        },
        filters={"state": item.state, "lane": item.lane},
        search=lambda text: item.title.contains(escape(text), autoescape=True),
        facets=("state", "lane"),
    )
