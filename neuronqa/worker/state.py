"""What a move and a step do to a module's own structure."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from neuronqa.domain.observation import StateUse


@dataclass(frozen=True)
class Structure:
    """A module's parameters and buffers before the move. Holds the very objects, so that identity can be asked."""

    parameters: dict[str, nn.Parameter]
    buffers: dict[str, Tensor]
    values: dict[str, Tensor]
    dtypes: dict[str, torch.dtype]
    persistent: frozenset[str]

    @classmethod
    def of(cls, module: nn.Module) -> Structure:
        parameters = dict(module.named_parameters(remove_duplicate=False))
        buffers = dict(module.named_buffers(remove_duplicate=False))
        tensors: dict[str, Tensor] = {**parameters, **buffers}
        return cls(
            parameters,
            buffers,
            {name: tensor.detach().clone() for name, tensor in tensors.items()},
            {name: tensor.dtype for name, tensor in tensors.items()},
            frozenset(module.state_dict()),
        )

    def after_move(self, module: nn.Module, device: torch.device) -> StateUse:
        """Compare `module` with what it was: ties, identities, places, dtypes and, through the host, values."""
        now: dict[str, Tensor] = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
        returned = {name: tensor.detach().cpu() for name, tensor in now.items()}
        saved = module.state_dict()
        lost = [name for name in self.persistent if name not in saved]
        changed = [name for name, value in self.values.items() if not _same(value, returned.get(name))]
        return StateUse(
            untied=self._untied(now),
            replaced=tuple(name for name, p in self.parameters.items() if now.get(name) is not p),
            left_behind=_left_behind(now, device),
            wrong_dtype=self._wrong_dtype(now),
            changed=tuple(sorted({*changed, *lost})),
        )

    def after_step(self, module: nn.Module, device: torch.device, moved: StateUse) -> StateUse:
        """Look again after an optimizer step: values are meant to change, everything else is not."""
        now: dict[str, Tensor] = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
        return StateUse(
            untied=_joined(moved.untied, self._untied(now)),
            replaced=moved.replaced,
            left_behind=_joined(moved.left_behind, _left_behind(now, device)),
            wrong_dtype=_joined(moved.wrong_dtype, self._wrong_dtype(now)),
            changed=moved.changed,
        )

    def _untied(self, now: dict[str, Tensor]) -> tuple[str, ...]:
        groups: dict[int, list[str]] = {}
        for name, parameter in self.parameters.items():
            groups.setdefault(id(parameter), []).append(name)
        return tuple(
            name for first, *others in groups.values() for name in others if now.get(name) is not now.get(first)
        )

    def _wrong_dtype(self, now: dict[str, Tensor]) -> tuple[str, ...]:
        return tuple(name for name, dtype in self.dtypes.items() if name in now and now[name].dtype is not dtype)


def _left_behind(now: dict[str, Tensor], device: torch.device) -> tuple[str, ...]:
    return tuple(name for name, tensor in now.items() if tensor.device.type != device.type)


def _same(before: Tensor, after: Tensor | None) -> bool:
    """Equal to the bit, NaN included; a change of dtype alone is not a change of value."""
    if after is None or after.shape != before.shape:
        return False
    both = after.to(before.dtype)
    return bool(((both == before) | ((both != both) & (before != before))).all())


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
