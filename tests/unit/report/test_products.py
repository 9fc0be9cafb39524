"""The products of the matmul suite: complete, never above a peak, and small ones bound by memory."""

from neuronqa import catalog
from neuronqa.report.products import ROWS, Product, machines, products, projections


def test_the_suite_has_every_projection_of_at_least_thirty_models_with_every_number_of_rows() -> None:
    assert len(projections()) >= 30
    wanted = {f"{model}/{name}-m{m}" for model, rows in projections().items() for name, _, _ in rows for m in ROWS}
    assert {entry.id for entry in catalog.open("matmul").entries()} == wanted


def test_executed_products_are_small_and_of_the_class_of_the_full_ones() -> None:
    shapes = {f"{model}/{name}": (k, n) for model, rows in projections().items() for name, k, n in rows}
    for entry in catalog.open("matmul").entries():
        assert entry.workload is not None
        small = entry.workload["spec"]["arguments"]
        k, n = shapes[entry.id.rpartition("-m")[0]]
        assert small["k"] % 128 == k % 128
        assert small["n"] % 512 == n % 512
        assert small["k"] <= 384
        assert small["n"] <= 1536


def test_no_machine_is_modelled_above_its_peak_and_one_row_is_bound_by_memory() -> None:
    for machine in machines():
        assert all(0 < machine.mfu(one) <= 1.001 for one in products()), machine.name
        assert machine.mfu(Product(m=1, k=4096, n=4096)) < 0.02
        assert machine.mfu(Product(m=2048, k=4096, n=14336)) > 0.9
        assert machine.source
        assert machine.profile or "roofline" in machine.name
        assert not machine.profile or "modelled" in machine.name
