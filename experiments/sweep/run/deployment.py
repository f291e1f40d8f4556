"""Send the source of mcastlab to the workers of a cluster, which need only its dependencies installed."""

import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PACKAGES", "archive", "deploy"]

PACKAGES = ("protocols", "topologies", "sim", "emu", "experiments", "mcastlab")


def deploy(spark: "SparkSession") -> None:
    """Send the packages to every worker of the session, where they precede installed ones."""
    path = archive(Path(tempfile.mkdtemp(prefix="mcastlab-")))
    if ".connect." in type(spark).__module__:
        spark.addArtifacts(str(path), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(path))


def archive(folder: Path) -> Path:
    """Write a zip file of the packages to the folder; source only, because compiled modules are not importable from a zip."""
    path = folder / "mcastlab.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for package in PACKAGES:
            spec = find_spec(package)
            assert spec is not None, f"{package} is not there"
            assert spec.origin is not None, f"{package} has no file"
            top = Path(spec.origin).parent
            for source in sorted(top.rglob("*.py")):
                file.write(source, Path(package, source.relative_to(top)))
    return path
