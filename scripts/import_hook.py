"""Import modules from the compiled ones in this folder, where they were compiled from the very sources that would be imported.

`scripts/compiled.py` installs this file as the package `mcastlab_compiled`, together with the compiled modules and the digests
of all sources they were compiled from. As long as one source differs, every module is imported from its source: compiled
modules call each other directly, so either all of them are used or none.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec

__all__ = ["CompiledFinder", "finder"]

PURE = "MCASTLAB_PURE"
"""The environment variable that switches compiled modules off, when it is 1."""


# The module is imported whenever Python starts, so it imports only what Python has imported before.
class CompiledFinder:
    """Finds the compiled modules of `folder`, as an entry of `sys.meta_path`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._packages = {entry.name for entry in os.scandir(folder) if entry.is_dir()}
        self._refusals: dict[str, str | None] = {}

    def find_spec(self, fullname: str, path=None, target=None) -> ModuleSpec | None:  # type: ignore[no-untyped-def]
        """Return where the compiled module is; None for modules that are not compiled, and where `refusal` has a reason."""
        del target
        parents = fullname.split(".")[:-1]
        if not parents:
            # The shared library that all compiled modules are in, which they import.
            return self._compiled(fullname, self.folder) if fullname.endswith("__mypyc") else None
        if parents[0] not in self._packages:
            return None
        root = next(iter(path))
        for _ in parents:
            root = os.path.dirname(root)
        return None if self.refusal(root) is not None else self._compiled(fullname, os.path.join(self.folder, *parents))

    def refusal(self, root: str) -> str | None:
        """Return why the packages in the folder `root` are imported from their sources; None when they are not.

        The answer remains the same, since a process uses all compiled modules or none.
        """
        if root not in self._refusals:
            self._refusals[root] = f"{PURE}=1" if os.environ.get(PURE) == "1" else self._change(root)
        return self._refusals[root]

    def _change(self, root: str) -> str | None:
        import json

        with open(os.path.join(self.folder, "sources.json"), encoding="utf-8") as file:
            digests = json.load(file)
        changed = next((name for name, digest in digests.items() if digest_of(os.path.join(root, name)) != digest), None)
        return None if changed is None else f"{changed} is not what the compiled modules were built from"

    @staticmethod
    def _compiled(fullname: str, folder: str) -> ModuleSpec | None:
        spec = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(fullname)
        # A folder is found, too, without a loader.
        return spec if spec is not None and spec.loader is not None else None


def digest_of(path: str) -> str | None:
    """Return the digest of a source; None if there is no such file."""
    from hashlib import sha256

    try:
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except OSError:
        return None


finder = CompiledFinder(os.path.dirname(__file__))
sys.meta_path.insert(0, finder)
