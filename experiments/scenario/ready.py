"""Find the scenarios that come with mcastlab; their names are accepted in place of scenario files."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from protocols.errors import UsageError

__all__ = ["FOLDER", "ReadyScenario", "find_scenario", "ready_scenarios"]

FOLDER = Path(__file__).parents[1] / "scenarios"


@dataclass(frozen=True, slots=True)
class ReadyScenario:
    """A scenario that comes with mcastlab. `name` is its path in `FOLDER` without suffix, such as `twin/lan-1`."""

    name: str
    path: Path

    @property
    def about(self) -> str:
        """Description: the comment at the beginning of the file, in one line."""
        lines: list[str] = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                break
            lines.append(line.lstrip("# "))
        return " ".join(lines)


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
    if path.is_file() or path.suffix:
        return path
    ready = ready_scenarios()
    name = Path(wanted).as_posix()
    if name in ready:
        return ready[name].path
    near = get_close_matches(name, ready, 3, 0.5)
    hint = f"near: {', '.join(near)}" if near else "mcastlab scenarios lists them"
    raise UsageError(f"scenario: value {name!r} is not allowed; neither a file nor a ready one ({hint})")
