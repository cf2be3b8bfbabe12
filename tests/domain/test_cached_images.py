"""A node's cached images in step with its section."""

from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability
from domain.cached_images import CachedImage, ImageCachePlan, plan_image_cache
from domain.documents.images import Image, ImagesSection

NAMES = st.sampled_from(["os:1", "os:2", "registry/a:latest"])
IMAGES = st.lists(
    st.builds(
        Image,
        reference=NAMES,
        digest=st.none() | st.sampled_from(["sha256:aa", "sha256:bb"]),
        size_bytes=st.none() | st.integers(0, 2**50),
    ),
    max_size=6,
).map(tuple)


def _section(*images: Image) -> dict[str, ImagesSection]:
    return {"images": ImagesSection(images=images)}


def test_what_came_is_written_and_what_went_is_deleted() -> None:
    current = [CachedImage("os:1", "sha256:aa", 5), CachedImage("os:2", "", None)]
    plan = plan_image_cache(current, _section(Image(reference="os:1", digest="sha256:aa", size_bytes=6)))
    assert plan == ImageCachePlan((CachedImage("os:1", "sha256:aa", 6),), (CachedImage("os:2", "", None),))


def test_a_section_that_did_not_come_or_does_not_know_changes_nothing() -> None:
    current = [CachedImage("os:1", "sha256:aa", 5)]
    assert plan_image_cache(current, {}) == ImageCachePlan((), ())
    unknown = ImagesSection(unavailable={"images": Availability.TEMPORARILY_FAILED})
    assert plan_image_cache(current, {"images": unknown}) == ImageCachePlan((), ())


def test_no_images_are_an_answer() -> None:
    current = [CachedImage("os:1", "sha256:aa", 5)]
    assert plan_image_cache(current, _section()).delete == tuple(current)


@given(IMAGES, IMAGES)
def test_planning_what_was_written_plans_nothing(before: tuple[Image, ...], after: tuple[Image, ...]) -> None:
    stored: dict[tuple[str, str], CachedImage] = {}
    for images in (before, after):
        plan = plan_image_cache(stored.values(), _section(*images))
        for image in plan.delete:
            del stored[image.reference, image.digest]
        stored.update({(image.reference, image.digest): image for image in plan.upsert})
        assert plan_image_cache(stored.values(), _section(*images)) == ImageCachePlan((), ())
        assert {image.reference for image in images} == {reference for reference, _ in stored}


@given(IMAGES)
def test_the_order_of_images_does_not_matter(images: tuple[Image, ...]) -> None:
    sizes = {(image.reference, image.digest): image for image in images}
    assert plan_image_cache([], _section(*sizes.values())) == plan_image_cache(
        [], _section(*reversed(list(sizes.values())))
    )
