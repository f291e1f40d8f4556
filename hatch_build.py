"""Build hook: a wheel has the reference values of `mcastlab validate`, and with `MCASTLAB_COMPILE=1` compiled modules.

    MCASTLAB_COMPILE=1 pip install .

compiles them by `scripts/compiled.py`.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))

from compiled import NAME, compile_into

__all__ = ["BuildHook"]

WANTED = os.environ.get("MCASTLAB_COMPILE") == "1"


class BuildHook(BuildHookInterface):
    """Add the `files` of its configuration, and the package of compiled modules with the file that imports it, to the wheel."""

    def dependencies(self) -> list[str]:
        """Return the packages that the compiled build requires; none for a pure build."""
        return ["mypy>=2.4", "mypy-extensions>=1.0", "setuptools"] if WANTED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add files; compile in a temporary folder if that is wanted."""
        is_editable = version == "editable"
        if not is_editable:
            # An editable installation has them in the checkout.
            build_data["force_include"] |= {str(Path(self.root) / source): at for source, at in self.config["files"].items()}
        if not WANTED:
            return
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        compile_into(folder)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        included = "force_include_editable" if is_editable else "force_include"
        build_data[included] |= {str(folder / name): name for name in (NAME, f"{NAME}.pth")}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if WANTED:
            self._folder.cleanup()
