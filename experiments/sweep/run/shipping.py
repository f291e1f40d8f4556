"""mcastlab itself, sent to the workers of a cluster: they need its dependencies, and nobody has to install it there."""

import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PACKAGES", "archive", "ship"]

PACKAGES = ("protocols", "topologies", "sim", "emu", "experiments", "mcastlab")


def ship(spark: "SparkSession") -> None:
    """Send the packages to every worker of the session, where they come before what is installed."""
    path = archive(Path(tempfile.mkdtemp(prefix="mcastlab-")))
    if ".connect." in type(spark).__module__:
        spark.addArtifacts(str(path), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(path))


def archive(folder: Path) -> Path:
    """A zip file of the packages in the folder: source only, since compiled modules can't be imported from one."""
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
