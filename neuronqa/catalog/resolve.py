"""From a name or a path to a catalog.

A path is taken as it is. A name is looked up in `NEURONQA_CATALOGS` (folders, separated as in PATH), among the pulled
snapshots of the cache, and among the bundled definitions. `top-100k` is always there: where no snapshot of the Hub was
pulled, it is the offline edition, and its notice says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from neuronqa import bundled, cachedir
from neuronqa.catalog import definition, files, manifest, offline
from neuronqa.catalog.catalog import Catalog, Statuses, selected
from neuronqa.catalog.select import Results, split_name
from neuronqa.catalog.snapshot import Snapshot, newest
from neuronqa.errors import BadInput, EnvironmentFault, UsageError

ENVIRONMENT: Final = "NEURONQA_CATALOGS"
TOP: Final = "top-100k"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
OFFLINE_NOTICE: Final = (
    "no snapshot of the Hub was pulled: this is the offline edition, generated from the installed transformers with "
    "published popularity figures; its models are synthetic and its rates are not Hub coverage "
    "(`neuronqa catalog pull top-100k` gets the real list)"
)


def open_catalog(
    name_or_path: str, *, select: str = "", statuses: Statuses | None = None, results: Results | None = None
) -> Catalog:
    """Open a catalog by name or path. A selector may follow the name in brackets, and `select` may narrow that further.

    `statuses` plans a catalog where `status:` is selected by, `results` answers `failed:` and `cluster:`. Raises
    BadInput when there is none of that name or it cannot be read, UsageError for a bad selector and for one that needs
    what is not given.
    """
    name, expression = split_name(name_or_path)
    catalog = _whole(name)
    for part in (expression, select):
        if part:
            catalog = selected(catalog, part, statuses, results)
    return catalog


def own_policy(name_or_path: str) -> str:
    """The policy a catalog is made for, or an empty string. Raises as :func:`open_catalog` does for no catalog."""
    return str(getattr(_whole(split_name(name_or_path)[0]), "policy", ""))


def pulled_folder(name: str) -> Path:
    """Where the pulled snapshots of `name` lie, one folder each, named by time. Raises UsageError for a name that no
    catalog may have."""
    if not _NAME.fullmatch(name):
        hint = "letters, digits, '.', '_' and '-', beginning with a letter or digit"
        raise UsageError(f"not a name of a catalog: {name[:80]!r}", hint=hint)
    return _pulled() / name


def _pulled() -> Path:
    return cachedir.cache_dir() / "catalogs" / "pulled"


def known() -> dict[str, str]:
    """Names that can be opened, and where each is found."""
    found = {TOP: "offline edition"}
    for folder in _shelves():
        for place in sorted(folder.iterdir()):
            if _is_catalog(place) or files.readable(place):
                found.setdefault(place.name, str(place))
    for place in sorted(bundled.folder("catalogs").iterdir()):
        if _is_catalog(place):
            found.setdefault(place.name, str(place))
    for place in sorted(_pulled().glob("*")):
        pulled = newest(place)
        if pulled:
            found[place.name] = str(pulled.folder)
    return found


def _whole(name: str) -> Catalog:
    if not _NAME.fullmatch(name) or _is_catalog(Path(name)) or files.readable(Path(name)):
        return read(Path(name))
    for folder in _shelves():
        if _is_catalog(folder / name) or files.readable(folder / name):
            return read(folder / name)
    pulled = newest(pulled_folder(name))
    if pulled:
        return pulled
    shipped = bundled.folder("catalogs") / name
    if _is_catalog(shipped):
        return read(shipped)
    if name == TOP:
        return Snapshot.open(offline.ensure(cachedir.cache_dir() / "catalogs" / "offline"), OFFLINE_NOTICE)
    raise BadInput(
        f"no catalog is called {name!r}", where=f"known: {', '.join(sorted(known()))}", hint="or give a folder"
    )


def read(path: Path) -> Catalog:
    """Open the snapshot or definition in the folder `path`. Raises BadInput."""
    if _holds(path, manifest.FILE):
        return Snapshot.open(path)
    if _holds(path, definition.FILE):
        return definition.read(path)
    if files.readable(path):
        return files.read(path, _all_pulled)
    what = "no catalog: neither the name of one nor a file or folder that holds one"
    raise BadInput(what, where=repr(str(path)[:200]), hint="neuronqa catalog list names the known ones")


def _all_pulled() -> list[Snapshot]:
    """The newest snapshot of every name that was pulled, the newest of all first."""
    found = [snapshot for place in _pulled().glob("*") if (snapshot := newest(place))]
    return sorted(found, key=lambda snapshot: snapshot.info.created, reverse=True)


def _is_catalog(place: Path) -> bool:
    return _holds(place, manifest.FILE) or _holds(place, definition.FILE)


def _holds(place: Path, file: str) -> bool:
    try:
        return (place / file).is_file()
    except (OSError, ValueError):  # a name too long for any file, or with a NUL
        return False


def _shelves() -> Iterator[Path]:
    named = os.environ.get(ENVIRONMENT, "")
    for part in named.split(os.pathsep):
        if part:
            if not Path(part).is_dir():
                raise EnvironmentFault(
                    f"a folder of {ENVIRONMENT} does not exist", where=part, hint="correct the variable"
                )
            yield Path(part)
