"""NRL's receiver, which has no keys, skips EXT_AUTH; nodes with keys refuse what has none, or is of another key."""

import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from emu.peers.nrl_norm import content
from tests.emu.lab import MCASTLAB, NRL, Lab
from topologies.generators import Star

pytestmark = [pytest.mark.emu, pytest.mark.peer]

ADDRESS = "239.7.7.11"
FILES = {f"object-{index}": content("1", index, size) for index, size in enumerate((60_000, 0, 1, 1_000_000))}
TIMING = ["--robust", "5", "--backoff", "1", "--gsize", "10", "--parity", "16", "--timeout", "20"]


def key_file(folder: Path, name: str, byte: int) -> list[str]:
    """Write a key file and return the option that names it."""
    path = folder / name
    path.touch(0o600)
    path.write_text(f"3 {bytes([byte] * 32).hex()}\n")
    return ["--key-file", str(path)]


def ours_to_all(folder: Path) -> dict[str, Any]:
    """Send with a key to NRL's receiver and to two of this project's: with the key and with another one."""
    lab = Lab(Star.model_validate({"receivers": 3}).build())
    key, other = key_file(folder, "group.key", 1), key_file(folder, "other.key", 2)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    where, count = ["--group", f"{ADDRESS}:6003", "--json"], ["--count", str(len(FILES)), "--timeout", "20"]
    there = ["--addr", ADDRESS, "--port", "6003", "--iface", lab.device("r1"), "--node", "3", "--expect", str(len(FILES))]
    nrls = lab.start("r1", [*NRL, "recv", *there, "--timeout", "20"])
    ours = lab.start("r2", [*MCASTLAB, "recv", *where, *key, *count, "--dir", str(folder / "r2")])
    refusing = lab.start("r3", [*MCASTLAB, "recv", *where, *other, "--dir", str(folder / "r3")])
    for host in ("r1", "r2", "r3"):
        lab.await_join(host, ADDRESS)
    paths = [str(folder / name) for name in FILES]
    sending = lab.start("sender", [*MCASTLAB, "send", *paths, *where, *key, *TIMING, "--grtt", "10ms", "--rate", "100Mbit"])
    found: dict[str, Any] = {"sender": lab.end(sending)[-1], "ours": lab.end(ours)[-1]}
    found["nrl"] = {line["name"]: line["sha256"] for line in lab.end(nrls) if line["event"] == "RX_OBJECT_COMPLETED"}
    return found | {"refusing": ended(lab, refusing)}


def nrls_to_ours(folder: Path) -> dict[str, Any]:
    """Send from NRL's sender to this project's receiver, which has keys."""
    lab = Lab(Star.model_validate({"receivers": 1}).build())
    where = ["--group", f"{ADDRESS}:6003", "--json", *key_file(folder, "group.key", 1)]
    receiving = lab.start("r1", [*MCASTLAB, "recv", *where, "--dir", str(folder / "r1")])
    lab.await_join("r1", ADDRESS)
    there = ["--addr", ADDRESS, "--port", "6003", "--iface", lab.device("sender"), "--kind", "file", "--sizes", "60000"]
    sending = lab.start("sender", [*NRL, "send", *there, "--grtt", "0.01", "--gsize", "10", "--backoff", "1"])
    return {"sender": lab.end(sending)[-1], "r1": ended(lab, receiving)}


def ended(lab: Lab, process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Interrupt a receiver; return its summary."""
    process.terminate()
    return lab.end(process)[-1]


def test_nrls_receiver_skips_the_extension_and_ours_with_another_key_refuses_the_packets() -> None:
    digests = {name: sha256(data).hexdigest() for name, data in FILES.items()}
    with tempfile.TemporaryDirectory() as folder:
        found = run_isolated(lambda: ours_to_all(Path(folder)))
    assert found["sender"]["ok"]
    assert found["nrl"] == digests
    assert found["ours"]["ok"]
    assert {row["name"]: row["sha256"] for row in found["ours"]["files"]} == digests
    # NRL's receiver may have answered a probe.
    assert found["ours"].get("unauthenticated", 0) < 5
    refusing = found["refusing"]
    assert (refusing["code"], refusing["objects"]) == (130, 0)
    assert refusing["unauthenticated"] > sum(map(len, FILES.values())) // 1400


def test_nrls_sender_which_has_no_keys_is_refused_by_a_receiver_with_keys() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = run_isolated(lambda: nrls_to_ours(Path(folder)))
    assert found["sender"]["code"] == 0
    assert (found["r1"]["code"], found["r1"]["objects"]) == (130, 0)
    assert found["r1"]["unauthenticated"] > 60_000 // 1400
