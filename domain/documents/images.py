"""The `images` section."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Bytes, Document, Section


class Image(Document, frozen=True):
    """A cached operating-system or container image."""

    reference: Annotated[str, Meta(description="Name and tag.")]
    digest: Annotated[str | None, Meta(description="Content digest.")] = None
    size_bytes: Annotated[Bytes | None, Meta(description="Size.")] = None


class Weights(Document, frozen=True):
    """Model weights the node can see."""

    path: Annotated[str, Meta(description="Exact path.")]
    size_bytes: Annotated[Bytes | None, Meta(description="Size.")] = None
    shared: Annotated[bool | None, Meta(description="On a filesystem shared with other nodes.")] = None


class ImagesSection(Section, frozen=True):
    """Cached images and visible weights."""

    images: Annotated[tuple[Image, ...], Meta(max_length=16384, description="Images, by reference and digest.")] = ()
    weights: Annotated[
        Annotated[tuple[Weights, ...], Meta(max_length=16384)] | None,
        Meta(description="Weights, by path; null when the node was not asked."),
    ] = None
