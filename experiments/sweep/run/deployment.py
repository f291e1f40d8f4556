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
    if ".connect." in type(spark).__module__:
        with tempfile.TemporaryDirectory(prefix="mcastlab-") as folder:
            spark.addArtifacts(str(archive(Path(folder))), pyfile=True)
        return
    from pyspark import SparkFiles

    # Workers fetch the file while Spark runs; Spark removes its folder when it stops.
    folder = tempfile.mkdtemp(prefix="mcastlab-", dir=SparkFiles.getRootDirectory())
    spark.sparkContext.addPyFile(str(archive(Path(folder))))


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
