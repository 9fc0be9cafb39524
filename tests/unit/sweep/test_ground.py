"""Where workers go: how many slots of a width a node holds, and who may take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuronqa.domain.build import BuildOrder
from neuronqa.sweep import ground
from neuronqa.sweep.cluster_fleet import fit, resource_of
from neuronqa.sweep.ground import ACCELERATOR, CPU, ClusterGround, LocalGround
from neuronqa.worker.actor import versions
from neuronqa.worker.parcel import Parcel, Unpacked

NODES = [
    {"NodeID": "aa" * 28, "NodeManagerHostname": "one", "Alive": True, "Resources": {"CPU": 8.0, "neuron_cores": 4.0}},
    {"NodeID": "bb" * 28, "NodeManagerHostname": "one", "Alive": True, "Resources": {"CPU": 2.0}},
    {"NodeID": "cc" * 28, "NodeManagerHostname": "two", "Alive": False, "Resources": {"CPU": 64.0}},
    {"NodeID": "dd" * 28, "NodeManagerHostname": "head", "Alive": True, "Resources": {"memory": 1.0}},
]


class FakeRay:
    def nodes(self) -> list[dict[str, Any]]:
        return NODES

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 7.0}


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "_ray", FakeRay)


@pytest.mark.parametrize(("ranks", "slots"), [(1, 4), (2, 2), (3, 1), (4, 1), (16, 1)])
def test_at_home_more_ranks_than_slots_share_them_all(ranks: int, slots: int) -> None:
    home = LocalGround(workers=4, environment={})
    (node,) = home.nodes(ranks)
    assert node.slots == slots
    assert home.options(ranks, node)["num_cpus"] == min(ranks, 4)


@pytest.mark.parametrize(
    ("resource", "ranks", "slots"),
    [
        (CPU, 1, {"one-aaaaaaaa": 8, "one-bbbbbbbb": 2}),
        (CPU, 3, {"one-aaaaaaaa": 2}),
        (CPU, 9, {}),
        (ACCELERATOR, 1, {"one-aaaaaaaa": 4}),
        (ACCELERATOR, 4, {"one-aaaaaaaa": 1}),
    ],
)
def test_a_slot_lies_on_one_living_node_that_has_all_of_it(resource: str, ranks: int, slots: dict[str, int]) -> None:
    found = ClusterGround(resource=resource).nodes(ranks)
    assert {node.name: node.slots for node in found} == slots


def test_the_widest_case_is_the_largest_nodes_and_what_others_hold_is_not_free() -> None:
    cluster = ClusterGround(resource=CPU)
    assert cluster.most_ranks() == 8
    assert [cluster.vacant(ranks) for ranks in (1, 2, 8)] == [7, 3, 0]


def test_an_accelerators_cores_are_asked_for_by_rays_own_name() -> None:
    cluster = ClusterGround(resource=ACCELERATOR)
    options = cluster.options(2, cluster.nodes(2)[0])
    assert (options["num_cpus"], options["resources"]) == (0, {"neuron_cores": 2})
    assert [resource_of(device) for device in ("neuron", "cpu:inductor", "privateuseone")] == [CPU, CPU, ACCELERATOR]


def test_a_node_with_another_build_may_not_take_part_and_is_told_why() -> None:
    assert fit({"versions": versions()}) == ""
    ours = versions()["torch"]
    assert fit({"versions": {**versions(), "torch": "1.0"}}) == f"another build: torch 1.0 there, {ours} here"


def test_what_an_order_names_travels_by_content(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    (there / "device.so").write_bytes(b"\x7fELF")
    (there / "kernel.py").write_text("pass")
    order = BuildOrder(
        device="neuron",
        profile="trn2-sdk2.33",
        binary=str(there / "device.so"),
        overlays=(str(there / "kernel.py"),),
        fault={"kind": "scale"},
    )
    moved = Unpacked(Parcel.of(order), here).here(order)
    assert Path(moved.binary).read_bytes() == b"\x7fELF"
    assert Path(moved.overlays[0]).read_text() == "pass"
    assert Path(moved.binary).is_relative_to(here)
    assert (moved.profile, moved.fault) == (order.profile, order.fault)
