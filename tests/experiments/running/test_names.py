"""File names received from the network never lead out of a folder."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running.names import LONGEST, safe_name

FALLBACK = "norm-1-2"


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (b"report.pdf", "report.pdf"),
        (b"../../etc/passwd", "passwd"),
        (b"/etc/passwd", "passwd"),
        (b"C:\\Windows\\system.ini", "system.ini"),
        (b"..", FALLBACK),
        (b".", FALLBACK),
        (b"", FALLBACK),
        (b"/", FALLBACK),
        (b"dir/", FALLBACK),
        (b"\0", FALLBACK),
        (b"name\0", "name"),
        (b".bashrc", "bashrc"),
        (b"...hidden", "hidden"),
        (b" . .x", "x"),
        (b"-rf", "_rf"),
        (b"a\nb\x1b[31m", "a_b_[31m"),
        ("a\u202egpj.exe".encode(), "a_gpj.exe"),
        (b"\xff\xfe", FALLBACK),
        (b"\xffname", "_name"),
        ("gr\u00fc\u00dfe.txt".encode(), "gr\u00fc\u00dfe.txt"),
        (b"x" * 300 + b".tar", "x" * (LONGEST - 4) + ".tar"),
        (b"two words.txt", "two words.txt"),
    ],
)
def test_names_become_safe(info: bytes, name: str) -> None:
    assert safe_name(info, FALLBACK) == name


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(lambda text: text.encode(errors="surrogatepass"))))
def test_any_bytes_become_one_safe_path_component(info: bytes) -> None:
    name = safe_name(info, FALLBACK)
    assert name
    assert "/" not in name
    assert "\\" not in name
    assert not name.startswith((".", "-", " "))
    assert not name.endswith(" ")
    assert len(name.encode()) <= LONGEST
    assert not any(unicodedata.category(letter)[0] == "C" for letter in name)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_safe_names_are_unchanged(info: bytes) -> None:
    name = safe_name(info, FALLBACK)
    assert safe_name(name.encode(), FALLBACK) == name
