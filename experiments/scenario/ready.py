"""Find the scenarios that come with mcastlab; their names are accepted in place of scenario files."""

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path

from protocols.errors import UsageError, shown

__all__ = ["EDITOR_LINE", "FOLDER", "ReadyScenario", "find_scenario", "ready_scenarios"]

FOLDER = Path(__file__).parents[1] / "scenarios"
LONGEST_NAME = 100
EDITOR_LINE = "# yaml-language-server:"
"""Beginning of the comment that names a file's JSON Schema, for editors."""


@dataclass(frozen=True, slots=True)
class ReadyScenario:
    """A scenario that comes with mcastlab. `name` is its path in `FOLDER` without suffix, such as `twin/lan-1`."""

    name: str
    path: Path

    @property
    def about(self) -> str:
        """Description: the comment at the beginning of the file, without the line for editors, in one line."""
        lines = takewhile(lambda line: line.startswith("#"), self.path.read_text(encoding="utf-8").splitlines())
        return " ".join(line.lstrip("# ") for line in lines if not line.startswith(EDITOR_LINE))


def ready_scenarios() -> dict[str, ReadyScenario]:
    """Return all ready scenarios by name, those in subfolders last."""
    paths = sorted(FOLDER.rglob("*.yaml"), key=lambda path: (len(path.parts), path))
    names = [path.relative_to(FOLDER).with_suffix("").as_posix() for path in paths]
    return {name: ReadyScenario(name, path) for name, path in zip(names, paths, strict=True)}


def find_scenario(wanted: Path | str, folder: Path = Path()) -> Path:
    """Return the file at `wanted`, relative to `folder`, or else the file of the ready scenario of this name.

    A path with a suffix is returned whether or not it exists. UsageError, with the nearest names, when there is neither.
    """
    path = folder / wanted
    try:
        if path.is_file() or path.suffix:
            return path
        if path.exists():
            raise UsageError(f"{path}: can't be read ({'is a folder' if path.is_dir() else 'not a regular file'})")
    except OSError as error:
        raise UsageError(f"scenario: value {shown(str(path))} is not allowed; {error.strerror}") from error
    ready = ready_scenarios()
    name = Path(wanted).as_posix()
    if name in ready:
        return ready[name].path
    near = get_close_matches(name, ready, 3, 0.5) if len(name) <= LONGEST_NAME else []
    hint = f"near: {', '.join(near)}" if near else "mcastlab scenarios lists them"
    raise UsageError(f"scenario: value {shown(name)} is not allowed; neither a file nor a ready one ({hint})")
