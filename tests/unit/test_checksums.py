"""Checksums of hand-made files: detected changes of a file or a folder, and their messages."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest

from qoslab.results import sealed_files
from qoslab.results.sealed_files import (
    FileSeal,
    add_seal,
    compute_seal,
    difference,
    differences,
    files_below,
    seals,
    split_seal,
)

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
"""SHA-256 of `hello`."""


def write_files(content: bytes, lines: int | None = None) -> FileSeal:
    return FileSeal(bytes=len(content), lines=lines, sha256=hashlib.sha256(content).hexdigest())


def put_file(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("size", "lines", "words"),
    [
        (0, None, "0 bytes"),
        (1, None, "1 byte"),
        (2, None, "2 bytes"),
        (0, 0, "0 lines (0 bytes)"),
        (1, 1, "1 line (1 byte)"),
        (9, 2, "2 lines (9 bytes)"),
    ],
)
def test_size_is_formatted_with_a_unit(size: int, lines: int | None, words: str) -> None:
    assert FileSeal(bytes=size, lines=lines, sha256=HELLO).size == words


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.txt", b"hello", 0),
        ("a.jsonl", b"1\n2\n3", 2),
        ("a.ios", b"", 0),
        ("a.json", b"\n\n", 2),
        ("a.pcapng", b"1\n2\n", None),
        ("txt", b"1\n", None),
    ],
)
def test_seal_contains_size_line_count_and_digest(tmp_path: Path, name: str, content: bytes, lines: int | None) -> None:
    assert compute_seal(put_file(tmp_path / name, content)) == write_files(content, lines)


def test_large_file_is_hashed_in_chunks(tmp_path: Path) -> None:
    content = b"0123456\n" * 2**21
    path = put_file(tmp_path / "large.txt", content)
    tracemalloc.start()
    try:
        found = compute_seal(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == write_files(content, 2**21)
    # A piece that was read, and the next one.
    assert most < len(content) / 4


def test_missing_file_has_no_checksum(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        compute_seal(tmp_path / "missing.txt")


def test_files_of_a_cell_are_all_but_its_record(tmp_path: Path) -> None:
    names = ["a.txt", "hosts/b.json", "hosts/deep/c.err", "hosts/cell.json"]
    paths = {name: put_file(tmp_path / name, name.encode()) for name in names}
    put_file(tmp_path / "cell.json", b"{}")
    (tmp_path / "empty").mkdir()
    assert dict(files_below(tmp_path)) == paths
    assert list(seals(tmp_path).items()) == [
        ("a.txt", write_files(b"a.txt", 0)),
        ("hosts/b.json", write_files(b"hosts/b.json", 0)),
        ("hosts/cell.json", write_files(b"hosts/cell.json", 0)),
        ("hosts/deep/c.err", write_files(b"hosts/deep/c.err", 0)),
    ]


def test_sealed_text_begins_with_its_digest() -> None:
    text = b'{\n  "a": 1\n}\n'
    digest = hashlib.sha256(text).hexdigest().encode()
    content = add_seal(text)
    assert content == b'{\n  "seal": "' + digest + b'",\n  "a": 1\n}\n'
    assert split_seal(content) == (text, True)
    # Anything else after the seal is not covered by it.
    assert split_seal(content.replace(b'"a": 1', b'"a": 2')) == (b'{\n  "a": 2\n}\n', False)
    assert split_seal(content + b" ") == (text + b" ", False)


@pytest.mark.parametrize("text", [b"[]", b'{"a": 1}', b""])
def test_only_objects_in_pydantic_layout_are_sealed(text: bytes) -> None:
    with pytest.raises(AssertionError):
        add_seal(text)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{\n  "a": 1\n}\n',
        b" " + add_seal(b'{\n  "a": 1\n}\n'),
        b'{\n  "seal": "' + b"0" * 63 + b'",\n  "a": 1\n}\n',
    ],
)
def test_file_without_seal_has_no_checksum(content: bytes) -> None:
    assert split_seal(content) == (content, False)


def test_unchanged_file_does_not_differ(tmp_path: Path) -> None:
    path = put_file(tmp_path / "a.txt", b"hello")
    assert difference(path, "a.txt", write_files(b"hello", 0)) == ""
    # Lines are counted for people; another version may count those of other files.
    assert difference(path, "a.txt", write_files(b"hello")) == ""


def test_difference_is_a_full_sentence(tmp_path: Path) -> None:
    path = put_file(tmp_path / "a.txt", b"hello")
    assert difference(path, "x/a.txt", write_files(b"1\n2\n", 2)) == (
        "x/a.txt: found 0 lines (5 bytes), expected 2 lines (4 bytes)"
    )
    other = hashlib.sha256(b"hallo").hexdigest()[:12]
    assert difference(path, "x/a.txt", write_files(b"hallo", 0)) == (
        "x/a.txt: found content that was changed after the run, in 0 lines (5 bytes) "
        f"(SHA-256 2cf24dba5fb0…, expected {other}…)"
    )
    assert difference(tmp_path / "b.txt", "x/b.txt", write_files(b"1\n", 1)) == (
        "x/b.txt is missing; its recorded size is 1 line (2 bytes)"
    )
    assert difference(tmp_path, "x", write_files(b"1")) == "x cannot be read: Is a directory"


def test_file_larger_than_any_of_a_cell_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_file(tmp_path / "a.pcapng", b"hello")
    monkeypatch.setattr(sealed_files, "MOST_BYTES", 5)
    assert difference(path, "a.pcapng", write_files(b"hello")) == ""
    monkeypatch.setattr(sealed_files, "MOST_BYTES", 4)
    monkeypatch.setattr(sealed_files, "compute_seal", lambda path: pytest.fail("was read"))
    assert difference(path, "a.pcapng", write_files(b"hello")) == "a.pcapng: found 5 bytes, expected 5 bytes"


def test_differences_of_a_cell_concern_only_its_files(tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    for name in ("cell.json", "same.txt", "cut.txt", "z.txt", "more/b.txt"):
        put_file(cell / name, b"1\n")
    put_file(tmp_path / "next.txt", b"1\n")
    seal_of_all = {
        "same.txt": write_files(b"1\n", 1),
        "../next.txt": write_files(b"1\n", 1),
        "cut.txt": write_files(b"1\n2", 1),
        "gone.pcapng": write_files(b"1\n2"),
    }
    assert list(differences(cell, seal_of_all)) == [
        "../next.txt is missing; its recorded size is 1 line (2 bytes)",
        "cut.txt: found 1 line (2 bytes), expected 1 line (3 bytes)",
        "gone.pcapng is missing; its recorded size is 3 bytes",
        "more/b.txt was not written by the run",
        "z.txt was not written by the run",
    ]
