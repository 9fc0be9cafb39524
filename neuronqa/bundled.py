"""Where the files that ship beside the code are: `catalogs`, `workers`, `db` and `dashboards`.

In a wheel they lie in `neuronqa/_bundled/`; in a checkout they are the top folders of the same names.
"""

from __future__ import annotations

from pathlib import Path

from neuronqa.errors import EnvironmentFault

FOLDERS = ("catalogs", "workers", "db", "dashboards")


def folder(name: str) -> Path:
    """Return the folder `name`. Raises EnvironmentFault when the installation lacks it."""
    if name not in FOLDERS:
        raise ValueError(f"{name!r} is not one of {FOLDERS}")
    package = Path(__file__).resolve().parent
    places = (package / "_bundled" / name, package.parent / name)
    for place in places:
        if place.is_dir() and not (place / "__init__.py").exists():
            return place
    looked = " and ".join(str(place) for place in places)
    raise EnvironmentFault(f"the installation has no {name!r} folder", where=looked, hint="reinstall neuronqa")
