"""Claims as data: what a document says, the scenario that shows it, and the criterion."""

from math import inf
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from experiments.claims.expressions import Formula
from experiments.scenario.files import read_yaml
from experiments.scenario.validation_errors import validated
from protocols.errors import UsageError

__all__ = ["FOLDER", "Check", "Claim", "ClaimFile", "World", "claim_files", "read_claims"]

FOLDER = Path(__file__).parent
World = Literal["sim", "emu"]
STANDARD_ERRORS = 4.0
"""By how many standard errors a mean may be off the value that it should be near."""
ROUNDING = 1e-9
"""By how much a mean may be off the value that it should have exactly."""

_FormulaText = Annotated[str, BeforeValidator(lambda text: Formula(text).text if isinstance(text, str) else text)]


class Check(BaseModel):
    """One thing that is measured in each run, and what it should be: at least, at most, or near a value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str = Field(min_length=1, description="what is measured, in a few words")
    measure: _FormulaText = Field(description="formula over the results of the cases by their names, or of `run`")
    least: float | None = Field(default=None, description="the mean is at least this")
    most: float | None = Field(default=None, description="the mean is at most this")
    near: float | None = Field(default=None, description="the mean is this, or `within` a part of it (or four standard errors)")
    within: float = Field(default=0.0, ge=0.0, description="fraction of `near`")

    @model_validator(mode="after")
    def _has_a_criterion(self) -> "Check":
        if (self.near is None) == (self.least is None and self.most is None):
            raise ValueError("it should have `near`, or else `least` or `most` or both")
        return self

    @property
    def wanted(self) -> str:
        """The criterion in words."""
        if self.near is not None:
            return f"{self.near:g}" if not self.within else f"{self.near:g} within {self.within:.3g} of it"
        limits = [("at least", self.least), ("at most", self.most)]
        return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)

    def allows(self, mean: float, error: float) -> bool:
        """Return whether a mean with this standard error fulfils the criterion."""
        if self.near is not None:
            allowed = max(self.within * abs(self.near), STANDARD_ERRORS * error) if self.within else ROUNDING
            return abs(mean - self.near) <= allowed
        return (-inf if self.least is None else self.least) <= mean <= (inf if self.most is None else self.most)

    def is_close(self, mean: float, error: float) -> bool:
        """Return whether a limit is so close that two standard errors reach over it."""
        return any(abs(mean - limit) < 2 * error for limit in (self.least, self.most) if limit is not None)


class Claim(BaseModel):
    """A claim of a document. The first check is the main one; all have to be fulfilled."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    claim: str = Field(min_length=1, description="what the document says")
    criterion: str = Field(min_length=1, description="when the claim holds, in words")
    scenario: str = Field(min_length=1, description="scenario file in the folder of the claims, without suffix")
    emu_scenario: str = Field(default="", description="the one for Mininet, where that is another")
    runs: int = Field(default=1, ge=1, le=1000, strict=True, description="runs with consecutive seeds")
    worlds: tuple[World, ...] = Field(default=("sim",), min_length=1, description="worlds in which it is judged")
    shown: tuple[World, ...] = Field(default=(), description="worlds in which it is measured, and not judged")
    why_not: str = Field(default="", description="why it is not judged in the other world")
    rules: bool = Field(default=False, description="check the rules of `mcastlab zoo`, too; `broken` of a case counts breaks")
    families: tuple[str, ...] = Field(
        default=(), description="families of reference values to measure; `agree.FAMILY` is the share that agrees (simulator)"
    )
    probes: tuple[str, ...] = Field(default=(), description="functions of experiments.claims.probes to call")
    checks: tuple[Check, ...] = ()
    sim_checks: tuple[Check, ...] = Field(default=(), description="further checks in the simulator only")
    emu_checks: tuple[Check, ...] = Field(default=(), description="further checks in Mininet only")
    caveat: str = Field(default="", description="what limits the claim even if the criterion is fulfilled")
    sim_caveat: str = Field(default="", description="what limits it in the simulator only")
    reason: str = Field(default="", description="why the claim does not hold, where that is known")

    @model_validator(mode="after")
    def _has_checks(self) -> "Claim":
        for world in (*self.worlds, *self.shown):
            if not self.checks_on(world):
                raise ValueError(f"it has no checks for world {world!r}")
        return self

    def checks_on(self, world: World) -> tuple[Check, ...]:
        """Return the checks in a world."""
        return self.checks + (self.sim_checks if world == "sim" else self.emu_checks)

    def caveat_on(self, world: World) -> str:
        """Return what limits the claim in a world, empty for nothing."""
        return self.caveat or (self.sim_caveat if world == "sim" else "")

    def scenario_on(self, world: World) -> str:
        """Return the scenario in a world."""
        return self.emu_scenario if world == "emu" and self.emu_scenario else self.scenario


class ClaimFile(BaseModel):
    """The claims of one document."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: str = Field(min_length=1, description="number of the document")
    title: str = Field(min_length=1)
    about: str = Field(min_length=1, description="a paragraph about the document and how its claims are measured")
    claims: dict[str, Claim] = Field(min_length=1)


def claim_files() -> dict[str, Path]:
    """Return the files of claims by the number of their document."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def read_claims(seed: str) -> ClaimFile:
    """Return the claims of a document. UsageError for an unknown one."""
    files = claim_files()
    if seed not in files:
        raise UsageError(f"SEED: value {seed!r} is not allowed; one of {', '.join(files)}")
    return validated(ClaimFile, read_yaml(files[seed]), str(files[seed]), ClaimFile.model_json_schema)
