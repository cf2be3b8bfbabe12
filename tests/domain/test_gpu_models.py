"""The table of GPU models: its versions, and that its rows agree with each other."""

import pytest

from domain.errors import InvalidInput
from domain.gpu_models import GPU_MODELS_VERSION, GpuProduct, gpu_models
from domain.gpu_names import canonicalize

CURRENT = gpu_models()
SOURCES = {source.key for source in CURRENT.sources}
VERSION_2 = {
    "H100": ["SXM5-80GB", "PCIE-80GB", "NVL-94GB"],
    "H200": ["SXM5-141GB", "NVL-141GB"],
    "B200": ["SXM-180GB"],
    "GB200": ["SUPERCHIP-186GB"],
    "A100": ["SXM4-40GB", "SXM4-80GB", "PCIE-40GB", "PCIE-80GB"],
    "L40S": ["PCIE-48GB"],
    "L4": ["PCIE-24GB"],
    "RTX-PRO-6000": ["SERVER-96GB", "WORKSTATION-96GB", "MAXQ-96GB"],
    "GH200": ["SUPERCHIP-96GB", "SUPERCHIP-144GB"],
    "L40": ["PCIE-48GB"],
    "A40": ["PCIE-48GB"],
    "A30": ["PCIE-24GB"],
    "A10": ["PCIE-24GB"],
    "RTX-6000-ADA": ["PCIE-48GB"],
    "RTX-A6000": ["PCIE-48GB"],
    "RTX-5090": ["PCIE-32GB"],
    "RTX-5080": ["PCIE-16GB"],
    "RTX-4090": ["PCIE-24GB"],
}


def test_version_2_has_these_families_and_products_and_no_others() -> None:
    table = gpu_models(2)
    assert table.version == 2
    assert table.models == tuple(VERSION_2)
    products = [f"{model}-{rest}" for model, forms in VERSION_2.items() for rest in forms]
    assert [each.product for each in table.products] == products
    assert table.vgpu_stems == ()


def test_the_current_version_is_3_and_keeps_every_row_of_version_2() -> None:
    assert (GPU_MODELS_VERSION, CURRENT.version) == (3, 3)
    assert CURRENT.products[: len(gpu_models(2).products)] == gpu_models(2).products
    assert {each.since for each in CURRENT.products} == {2, 3}


@pytest.mark.parametrize("version", [-1, 1, 4])
def test_a_version_that_is_not_held_is_refused(version: int) -> None:
    with pytest.raises(InvalidInput, match="held from 2 to 3"):
        gpu_models(version)


@pytest.mark.parametrize("row", CURRENT.products, ids=lambda row: row.product)
def test_a_row_says_its_product_of_its_parts_and_where_it_is_from(row: GpuProduct) -> None:
    memory = [] if row.memory_gb is None else [f"{row.memory_gb}GB"]
    assert row.product == "-".join([row.model, row.form, *memory]) == canonicalize(row.product)
    assert row.names
    assert row.name_sources
    assert {*row.name_sources, *row.memory_sources} <= SOURCES
    assert bool(row.memory_sources) == (row.memory_gb is not None)


def test_every_product_and_stem_stands_once_and_every_source_is_used() -> None:
    products = [each.product for each in CURRENT.products]
    stems = [canonicalize(each.stem) for each in CURRENT.vgpu_stems]
    assert len(products) == len(set(products))
    assert len(stems) == len(set(stems))
    assert {each.model for each in CURRENT.vgpu_stems} - {None} <= set(CURRENT.models)
    assert {key for each in CURRENT.products for key in (*each.name_sources, *each.memory_sources)} == SOURCES


def test_no_product_is_called_as_another_is() -> None:
    names = {canonicalize(name): each.product for each in CURRENT.products for name in each.names}
    assert [each.product for each in CURRENT.products if names.get(each.product, each.product) != each.product] == []


def test_products_that_share_a_name_are_of_one_family_and_told_apart_by_memory_or_form() -> None:
    sharing: dict[str, list[GpuProduct]] = {}
    for each in CURRENT.products:
        for name in each.names:
            sharing.setdefault(canonicalize(name), []).append(each)
    for products in sharing.values():
        assert len({each.model for each in products}) == 1
        assert len({(each.form, each.memory_gb) for each in products}) == len(products)
