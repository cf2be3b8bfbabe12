"""The images that a node has cached, as its `images` section says (rule 1), for who looks where one lies already."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.documents.document import Section
from domain.documents.images import ImagesSection
from domain.sections import section_of


@dataclass(frozen=True, slots=True)
class CachedImage:
    """An image by name and content; an empty digest where the node did not tell it."""

    reference: str
    digest: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ImageCachePlan:
    """What to write and what to delete of a node's cached images, each sorted."""

    upsert: tuple[CachedImage, ...] = ()
    delete: tuple[CachedImage, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.upsert or self.delete)


def plan_image_cache(current: Iterable[CachedImage], sections: Mapping[str, Section]) -> ImageCachePlan:
    """Compare what is stored with what the section says; a section that did not come changes nothing.

    The same image listed twice is one; planning what was written plans nothing.
    """
    section = section_of(sections, ImagesSection)
    if section is None or "images" in section.unavailable:
        return ImageCachePlan((), ())
    stored = {(image.reference, image.digest): image for image in current}
    seen: dict[tuple[str, str], CachedImage] = {}
    for image in section.images:
        found = CachedImage(image.reference, image.digest or "", image.size_bytes)
        known = seen.setdefault((found.reference, found.digest), found)
        if known.bytes is None and found.bytes is not None:
            seen[found.reference, found.digest] = found
    return ImageCachePlan(
        upsert=tuple(sorted((image for key, image in seen.items() if stored.get(key) != image), key=_name)),
        delete=tuple(sorted((image for key, image in stored.items() if key not in seen), key=_name)),
    )


def _name(image: CachedImage) -> tuple[str, str]:
    return image.reference, image.digest
