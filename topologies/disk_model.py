"""The disk of a host, for stable storage. Durations are in seconds, sizes in bytes, rates in bytes per second."""

from pydantic import BaseModel, ConfigDict, Field

from topologies.units import Duration, Rate, Size

__all__ = ["DiskModel"]


class DiskModel(BaseModel):
    """One device that does one thing after another; all writes that wait for it become durable together (group commit).

    In an emulation the disk is the machine's own: `sync` and `seek` are waited for in addition, and `rate` is not applied.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sync: Duration = Field(default=0.0, description="Time until what was written is durable, per commit.")
    seek: Duration = Field(default=0.0, description="Time to find the place, per commit and per read.")
    rate: Rate | None = Field(default=None, description="Rate of reading and writing; none: unlimited.")
    size: Size | None = Field(
        default=None, gt=0, description="Bytes of keys and values it holds; a program that stores more ends. none: unlimited."
    )

    def time(self, size: int, *, commit: bool) -> float:
        """Return the seconds one commit or read of `size` bytes takes."""
        return self.seek + (self.sync if commit else 0.0) + (0.0 if self.rate is None else size / self.rate)
