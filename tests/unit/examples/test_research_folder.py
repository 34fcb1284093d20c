"""The folder of the research example: what can be read, what is told, and that nothing leads outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casework.examples.research import folder as module
from casework.examples.research.folder import MAX_DEPTH, MAX_FILE, Folder, UnreadableError, source_of

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a neighbour that no path may reach."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text(SECRET)
    made = tmp_path / "root"
    (made / "notes").mkdir(parents=True)
    (made / "notes/a.md").write_text("# A\n")
    return made


def why_not(folder: Folder, path: str) -> str:
    with pytest.raises(UnreadableError) as caught:
        folder.read(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "notes/../../outside/secret.txt",
        "notes/../notes/a.md",
        "/etc/passwd",
        "//etc/passwd",
        "",
        ".",
        "notes/\x00a.md",
        "link.txt",
        "way/secret.txt",
        "notes/loop/loop/a.md",
        "notes",
        "none.txt",
        "notes/a.md/b",
        "x" * 5000,
        "\udc80.txt",
    ],
)
def test_no_path_leads_outside(root: Path, path: str) -> None:
    """By `..`, from the top, through a link to a file or folder: all are refused, and say so in bounded words."""
    (root / "link.txt").symlink_to("../outside/secret.txt")
    (root / "way").symlink_to("../outside")
    (root / "notes/loop").symlink_to(".")
    said = why_not(Folder.at(root), path)
    assert SECRET not in said
    assert len(said) < 500


@pytest.mark.parametrize("below", ["..", "../outside", "/", "way", "notes/a.md", "none", "notes/../.."])
def test_no_folder_of_an_input_leads_outside(root: Path, below: str) -> None:
    (root / "way").symlink_to("../outside")
    with pytest.raises(UnreadableError):
        Folder.at(root, below)


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(root)
    assert Folder.at(tmp_path / "here").read("notes/a.md") == "# A\n"
    assert Folder.at(tmp_path / "here", "notes").read("a.md") == "# A\n"
    assert Folder.at(root, " ").listing().paths == ["notes/a.md"]


def test_a_folder_that_becomes_a_link_after_the_search_is_not_followed(root: Path) -> None:
    """What was a folder when it was listed is looked at again, part by part, when it is read."""
    folder = Folder.at(root)
    assert folder.listing().paths == ["notes/a.md"]
    (root / "notes").rename(root / "gone")
    (root / "notes").symlink_to("../outside")
    (root.parent / "outside/a.md").write_text(SECRET)
    assert "cannot be read" in why_not(folder, "notes/a.md")


def test_files_that_are_no_text_are_told_and_not_read(root: Path) -> None:
    (root / "big.txt").write_bytes(b"x" * (MAX_FILE + 1))
    (root / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (root / "zeros.txt").write_bytes(b"a\x00b")
    os.mkfifo(root / "pipe.txt")
    folder = Folder.at(root)
    assert "1,048,577 bytes; at most 1,048,576" in why_not(folder, "big.txt")
    assert "no text in UTF-8" in why_not(folder, "picture.txt")
    assert "is no text" in why_not(folder, "zeros.txt")
    assert "is no file" in why_not(folder, "pipe.txt")
    assert ("pipe.txt", "it is no file") in folder.listing().left_out


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_in_any_script_is_read(root: Path, encoding: str) -> None:
    (root / "橋.txt").write_bytes("橋と мост\r\nגשר".encode(encoding))
    assert Folder.at(root).read("橋.txt") == "橋と мост\nגשר"


def test_the_listing_is_in_order_and_tells_what_it_leaves_out(root: Path) -> None:
    deep = root.joinpath(*["d"] * (MAX_DEPTH + 1))
    deep.mkdir(parents=True)
    (deep / "far.txt").write_text("far")
    (root / ".hidden").write_text("hidden")
    (root / "b.txt").write_text("b")
    (root / "link.txt").symlink_to("b.txt")
    (root / "two\nlines.txt").write_text("odd")
    (root / os.fsdecode(b"half\xff.txt")).write_text("odd")
    made = Folder.at(root).listing()
    assert made.paths == ["b.txt", "notes/a.md"]
    assert dict(made.left_out) == {
        "/".join(["d"] * (MAX_DEPTH + 1)): f"only {MAX_DEPTH} folders deep is looked",
        "half?.txt": "its name cannot be written down",
        "link.txt": "links are not followed",
        "two\nlines.txt": "its name cannot be written down",
    }


def test_only_so_many_files_are_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 2)
    for name in "xyz":
        (root / f"{name}.txt").write_text(name)
    made = Folder.at(root).listing()
    assert made.paths == ["notes/a.md", "x.txt"]
    assert made.left_out == [(f"{name}.txt", "only the first 2 files are looked at") for name in "yz"]


def test_a_source_is_the_first_folder() -> None:
    assert [source_of(path) for path in ("a.md", "notes/a.md", "notes/b/a.md")] == [".", "notes", "notes"]
