"""Listings read back what was written, and refuse what no run wrote."""

import numpy as np
import pytest

from raybench.errors import DataError, OutOfReach
from raybench.formats import shardfile
from raybench.sources.image_files import ImageFiles
from raybench.sources.listings import SUFFIX, Listing, parsed_listing, read_listing


def test_a_listing_reads_back(tmp_path):
    uri = str(tmp_path / f"x{SUFFIX}")
    Listing("s3://bucket/images", "0f3e", ("a/ä.png", "b.png"), np.array([3, -1])).publish(uri)
    found = read_listing(uri)
    assert (found.root, found.digest, found.keys) == ("s3://bucket/images", "0f3e", ("a/ä.png", "b.png"))
    assert found.counts.tolist() == [3, -1]


def test_a_listing_of_files_in_many_places_reads_back(tmp_path):
    uri = str(tmp_path / f"x{SUFFIX}")
    Listing("/a/list.csv", "0f3e", ("a", "b"), uris=("/a/x/a.png", "s3://bucket/ä.png")).publish(uri)
    assert read_listing(uri).uris == ("/a/x/a.png", "s3://bucket/ä.png")
    images = ImageFiles.scan(uri)
    assert (images.digest, images.is_there, images.uri(1)) == ("0f3e", False, "s3://bucket/ä.png")
    with pytest.raises(OutOfReach, match=r"/a/x/a\.png: is gone, and what was computed from it is not in the store"):
        images.taken(np.array([0])).read(0)


def test_a_listing_that_is_gone_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.listing: does not exist"):
        read_listing(str(tmp_path / "gone.listing"))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("ends", np.array([[1.5]])),
        ("ends", np.array([4, 2])),
        ("ends", np.array([2, 99])),
        ("counts", np.array([1])),
        ("counts", np.array([1, -2])),
        ("uri_ends", np.array([4])),
        ("uri_ends", np.array([4, 2])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, array):
    letters = np.frombuffer(b"abcd", np.uint8)
    good = {
        "root": letters,
        "digest": letters,
        "letters": letters,
        "ends": np.array([2, 4]),
        "counts": np.array([1, 2]),
        "uri_letters": letters,
        "uri_ends": np.array([1, 4]),
    }
    assert parsed_listing(shardfile.encode(good, SUFFIX), "x").keys == ("ab", "cd")
    with pytest.raises(DataError, match="x: no listing of images"):
        parsed_listing(shardfile.encode({**good, name: array}, SUFFIX), "x")
