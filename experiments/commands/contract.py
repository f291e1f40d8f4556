"""`mcastlab contract`: check a protocol against the rules of the contract."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from experiments.commands.options import Brief, Columns, Json, Wide
from experiments.output.budget import Column, Table
from experiments.output.printer import Printer, View
from experiments.output.working import working
from protocols.errors import UsageError

__all__ = ["contract"]

_COLUMNS = (Column("status", rank=0), Column("rule", rank=0), Column("where", rank=1), Column("reason", rank=0))


def contract(
    *,
    protocol: Annotated[
        str,
        typer.Argument(metavar="PROTOCOL", help="Python file, importable module or name of a protocol.", show_default=False),
    ],
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Check a protocol of files against every rule of the contract: on fake hosts, in the simulator and over UDP on loopback.

    A module may set values of its config for this: CONTRACT = {"timeout": 0.05}. docs/own-protocol.md explains the rules.

    Exit code 0: every rule holds; 1: some are broken; 2: the protocol is unknown, can't be imported, or carries no
    files.
    """
    # Imported here, since the simulator would slow down the start of other commands.
    from experiments.contract.case import SETTINGS
    from experiments.contract.suite import case_of, examine
    from experiments.scenario.protocol_modules import find_protocol, protocol_names, resolve

    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(column.name for column in _COLUMNS)
    named = protocol in protocol_names()
    found = find_protocol(protocol) if named else find_protocol("", resolve(protocol))
    if not found.spec.carries_files:
        raise UsageError(f"PROTOCOL: value {protocol!r} is not allowed; one that carries files, as the rules are about these")
    with working(f"checking {found.spec.name}"):
        findings = list(examine(case_of(found.spec, SETTINGS.get(protocol, found.contract))))
    broken = sum(finding.status == "broken" for finding in findings)
    if as_json:
        plain = [asdict(finding) for finding in findings]
        typer.echo(json.dumps({"protocol": found.spec.name, "rules": len(findings), "broken": broken, "findings": plain}))
        return 1 if broken else 0
    printer = Printer(view)
    if not brief:
        printer.table(Table(_COLUMNS, [[each.status, each.rule, each.about, each.reason] for each in findings]))
    printer.line(f"{found.spec.name}: {len(findings) - broken} of {len(findings)} rules kept")
    return 1 if broken else 0
