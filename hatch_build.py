"""Build hook: `MCASTLAB_COMPILE=1 pip install .` compiles the hot modules (`scripts/compiled.py`)."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))

from compiled import compile_into

__all__ = ["CompileHook"]

WANTED = os.environ.get("MCASTLAB_COMPILE") == "1"


class CompileHook(BuildHookInterface):
    """Add extension modules to the wheel."""

    def dependencies(self) -> list[str]:
        """Return the packages that the compiled build requires; none for a pure build."""
        return ["mypy>=1.10", "mypy-extensions>=1.0", "setuptools"] if WANTED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in a temporary folder, so that the sources stay unchanged."""
        if not WANTED or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"] |= {str(folder / path): str(path) for path in compile_into(folder)}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if WANTED and version != "editable":
            self._folder.cleanup()
