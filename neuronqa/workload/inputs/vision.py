"""Arguments made of pixels: whole images, crops, videos, packed patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.inputs.scene import Form, Scene

DEFAULT_SIDE: Final = 64
PATCH_GRID: Final = 4
CROPS: Final = 3
_GRIDS: Final = ("image_grid_thw", "grid_thw", "video_grid_thw")


def side(scene: Scene) -> tuple[int, int]:
    """Height and width of an image."""
    value = scene.read("image_size", "img_size", of=scene.vision) or scene.read("image_size", "img_size")
    value = value or _built_for(scene.config.to_dict())
    if isinstance(value, list | tuple) and value:
        return int(value[0]), int(value[-1])
    if isinstance(value, dict):
        return int(value.get("height", DEFAULT_SIDE)), int(value.get("width", DEFAULT_SIDE))
    return (value, value) if isinstance(value, int) and value > 0 else (DEFAULT_SIDE, DEFAULT_SIDE)


def _built_for(fields: Mapping[str, Any]) -> Any:
    """The size that a named backbone, wherever it is, is told to be built for."""
    told = fields.get("model_args")
    if isinstance(told, dict) and told.get("img_size"):
        return told["img_size"]
    found = (_built_for(value) for value in fields.values() if isinstance(value, dict))
    return next((size for size in found if size), None)


def channels(scene: Scene) -> int:
    names = ("num_channels", "in_channels", "in_chans", "num_image_channels", "image_channels", "channels")
    value = scene.read(*names, of=scene.vision)
    return value if isinstance(value, int) and 0 < value <= 16 else 3


def patch(scene: Scene) -> int:
    return scene.count("patch_size", of=scene.vision, default=scene.count("patch_size", default=16))


def frames(scene: Scene) -> int:
    own = scene.count("num_frames", "frames_per_clip", default=0)
    return own or scene.count("num_frames", "frames_per_clip", of=scene.vision, default=2)


def merge(scene: Scene) -> int:
    return scene.count("spatial_merge_size", "merge_size", "downsample_factor", of=scene.vision, default=2)


def grid(scene: Scene) -> Tensor:
    """Time, height and width of each image in patches."""
    reach = 2 * merge(scene)
    return torch.tensor([[1, reach, reach]] * scene.batch)


def pixel_values(scene: Scene) -> list[Form]:
    if any(name in scene.parameters for name in _GRIDS):
        return packed(scene)
    c, (h, w), b = channels(scene), side(scene), scene.batch
    flat = PATCH_GRID * PATCH_GRID

    def form(label: str, *shape: int) -> Form:
        return Form(label, lambda: scene.noise("pixel_values", *shape))

    image = form("image", b, c, h, w)
    video = form("video", b, frames(scene), c, h, w)
    crops = form("crops", b, CROPS, c, h, w)
    patches = form("patches", b, flat, c * patch(scene) ** 2)
    first = [image]
    if "spatial_shapes" in scene.parameters:
        first = [patches, image]
    elif scene.read("image_grid_pinpoints") is not None:
        first = [crops, image]
    elif scene.read("num_frames", "frames_per_clip") and "video" in str(getattr(scene.model, "input_modalities", "")):
        first = [video, image]
    others = [
        form("pair", b, 2, c, h, w),
        form("one", b, 1, c, h, w),
        form("tile", b, 1, 1, c, h, w),
        video,
        form("rgb", b, 3, h, w),
        form("double", b, c, 2 * h, 2 * w),
        form("usual", b, c, 224, 224),
        crops,
        form("time-second", b, c, 2, h, w),
        form("flat-patches", flat, c * patch(scene) ** 2),
        patches,
        form("grey", b, 1, h, w),
    ]
    return first + [o for o in others if o.label not in {f.label for f in first}]


def packed(scene: Scene) -> list[Form]:
    """All patches of all images in one row, with their grid beside."""
    c, p = channels(scene), patch(scene)
    t = scene.count("temporal_patch_size", of=scene.vision, default=1)
    n = int(grid(scene).prod(-1).sum())

    def form(label: str, *shape: int) -> Form:
        return Form(label, lambda: scene.noise("pixel_values", *shape))

    return [
        form("packed", n, c * t * p * p),
        form("packed-two-frames", n, 2 * c * p * p),
        form("packed-square", n, c, p, p),
        form("packed-square-batch", 1, n, c, p, p),
        form("packed-batch", 1, n, c * t * p * p),
    ]


def pixel_mask(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, *side(scene), dtype=torch.long))]


def videos(scene: Scene) -> list[Form]:
    c, (h, w) = channels(scene), side(scene)
    return [Form("video", lambda: scene.noise("pixel_values_videos", scene.batch, frames(scene), c, h, w))]


def grids(scene: Scene) -> list[Form]:
    return [Form("grid", lambda: grid(scene))]


def sizes(scene: Scene) -> list[Form]:
    return [Form("sizes", lambda: torch.tensor([side(scene)] * scene.batch))]


def spatial_shapes(scene: Scene) -> list[Form]:
    return [Form("grid", lambda: torch.tensor([[PATCH_GRID, PATCH_GRID]] * scene.batch))]


def patch_mask(scene: Scene) -> list[Form]:
    if "spatial_shapes" in scene.parameters:
        return [Form("ones", lambda: torch.ones(scene.batch, PATCH_GRID * PATCH_GRID, dtype=torch.long))]
    return pixel_mask(scene)


def patch_positions(scene: Scene) -> list[Form]:
    """Row and column of each patch."""

    def make() -> Tensor:
        axis = torch.arange(PATCH_GRID)
        rows, columns = torch.meshgrid(axis, axis, indexing="ij")
        return torch.stack([rows, columns], -1).reshape(1, -1, 2).repeat(scene.batch, 1, 1)

    return [Form("grid", make)]


def merge_sizes(scene: Scene) -> list[Form]:
    return [Form("two", lambda: torch.tensor([2] * scene.batch))]


def masked_patches(scene: Scene) -> list[Form]:
    """Every second patch is hidden."""

    def make() -> Tensor:
        h, w = side(scene)
        n = (h // patch(scene)) * (w // patch(scene))
        tube = scene.count("tubelet_size", default=0)
        n *= frames(scene) // tube if tube else 1
        return (torch.arange(n) % 2 == 0).repeat(scene.batch, 1)

    return [Form("half", make)]


def flattened_patches(scene: Scene) -> list[Form]:
    """Row, column (from one) and the patch's pixels."""
    width = scene.count("patch_embed_hidden_size", of=scene.vision, default=768)

    def make() -> Tensor:
        n = PATCH_GRID * PATCH_GRID
        rows = torch.arange(1, n + 1).view(1, n, 1).repeat(scene.batch, 1, 1).float()
        return torch.cat([rows, torch.ones_like(rows), scene.noise("patches", scene.batch, n, width)], -1)

    return [Form("patches", make)]


def second_image(scene: Scene) -> list[Form]:
    return [Form("image", lambda: scene.noise("second_image", scene.batch, 3, *side(scene)))]


def high_resolution(scene: Scene) -> list[Form]:
    config = scene.read("high_res_vision_config")
    reach = scene.count("image_size", of=config, default=DEFAULT_SIDE) if config is not None else DEFAULT_SIDE
    return [Form("image", lambda: scene.noise("high_res_pixel_values", scene.batch, 3, reach, reach))]


def points(scene: Scene) -> list[Form]:
    return [Form("one", lambda: scene.uniform("input_points", scene.batch, 1, 1, 2) * min(side(scene)))]


def point_labels(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, 1, 1, dtype=torch.long))]
