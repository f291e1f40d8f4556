"""Files that are no captures, or broken ones, are told in words of files and not of code."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.captures.capture_file import CaptureFile
from protocols.errors import ConfigError

CAPTURE = Path(__file__).parents[2] / "vectors" / "norm" / "file_loss5.pcap"


@pytest.mark.parametrize(
    ("compress", "tool"),
    [
        (gzip.compress, "gunzip"),
        (lzma.compress, "unxz"),
        (bz2.compress, "bunzip2"),
        (lambda data: b"\x28\xb5\x2f\xfd" + data, "unzstd"),
    ],
)
def test_a_compressed_capture_is_answered_with_what_decompresses_it(
    tmp_path: Path, compress: Callable[[bytes], bytes], tool: str
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(compress(CAPTURE.read_bytes()))
    with pytest.raises(ConfigError, match=f"is not a pcap or pcapng file, and compressed; {tool} makes one that can be read"):
        next(CaptureFile(path).frames())


@pytest.mark.parametrize("size", [4, 10, 23])
def test_a_capture_without_a_whole_header_is_broken(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:size])
    with pytest.raises(ConfigError, match=r"a\.pcap: is a broken capture \(it ends inside its header of 24 bytes\)"):
        next(CaptureFile(path).frames())


def test_a_capture_that_is_a_header_alone_has_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:24])
    assert list(CaptureFile(path).frames()) == []
