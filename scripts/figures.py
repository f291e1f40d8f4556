"""Draw the figures of docs/design.md and docs/simulator.md into docs/images.

python -m scripts.figures
"""

from pathlib import Path

from experiments.drawing.svg import Drawing

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
__all__ = ["FIGURES", "fast_wing", "three_worlds"]

COLUMN, GAP, LEFT = 250.0, 20.0, 100.0
HEIGHT, STEP = 46.0, 66.0

WORLDS = (
    (
        "Simulator",
        "blue",
        (
            ("sim.host.SimHost", "the ports of the machine"),
            ("the message stays an object", "wire: bytes encodes and decodes it"),
            ("sim.network.Network", "the tree of the group"),
            ("sim.link.Link", "queue, rate, delay, loss: arithmetic"),
            ("event at the time of arrival", "one for all who receive it then"),
            ("sim.host.SimHost", "one input of the machine"),
        ),
    ),
    (
        "Mininet",
        "green",
        (
            ("emu.host.UdpHost", "the ports of the machine"),
            ("the codec encodes", "bytes of RFC 5740"),
            ("UDP socket", "in the node's network namespace"),
            ("bridges, routers, links", "of the kernel, or a Line in user space"),
            ("UDP socket, the codec decodes", "in another namespace"),
            ("emu.host.UdpHost", "one input of the machine"),
        ),
    ),
    (
        "Real network",
        "orange",
        (
            ("emu.host.UdpHost", "the ports of the machine"),
            ("the codec encodes", "bytes of RFC 5740"),
            ("UDP socket", "of the interface"),
            ("the network", "as it is"),
            ("UDP socket, the codec decodes", "on another machine"),
            ("emu.host.UdpHost", "one input of the machine"),
        ),
    ),
)
"""Name, colour and the stations of a packet (what, remark) in each world."""

LAYERS = (
    ("protocols/fast/lookahead.py, sim/fast/", "lookahead: a planned burst without an event per packet", (0.65, 0.21)),
    (
        "protocols/fast/lockstep.py, protocols/norm/fast/",
        "lockstep groups: one position for equal receivers",
        (2.42, 0.23),
    ),
    ("sim/", "grouped delivery: one event per packet and arrival time", (6.35, 3.20)),
    ("protocols/norm/, protocols/machine.py", "plain machines", ()),
)
"""Folder, its function, and CPU time per delivery (us) with it and the layers below: 10 and 1,000 receivers, 1 % loss.

The times are those of the table in docs/design.md.
"""


def station(drawing: Drawing, x: float, y: float, width: float, lines: tuple[str, str], ring: str) -> None:
    """Draw a box with a name and a remark."""
    drawing.box(x, y, width, HEIGHT, "band", ring=ring, rounding=6)
    drawing.text_at(x + width / 2, y + 16, lines[0], anchor="middle", bold=True, halo=False)
    drawing.text_at(x + width / 2, y + 32, lines[1], anchor="middle", colour="soft", halo=False)


def arrow(drawing: Drawing, x: float, top: float, bottom: float, colour: str) -> None:
    """Draw an arrow downwards."""
    drawing.line([(x, top), (x, bottom - 4)], colour)
    drawing.arrowhead(x, bottom, 0, 1, colour)


def three_worlds() -> str:
    """The way of one packet from a sender's machine to a receiver's in each of the three worlds."""
    drawing = Drawing("The way of one packet in the simulator, in Mininet and on a real network")
    rows = len(WORLDS[0][2])
    top, width = 76.0, len(WORLDS) * COLUMN + (len(WORLDS) - 1) * GAP
    bottom = top + (rows + 1) * STEP
    drawing.width, drawing.height = LEFT + width + 20, bottom + HEIGHT + 20
    station(drawing, LEFT, top - 4, width, ("NormSender", "one class in every world: Ports.send(Packet)"), "violet")
    station(drawing, LEFT, bottom, width, ("NormReceiver", "one class in every world: receive(message), Sink.write"), "violet")
    for row, word in enumerate(("machine", "host", "wire", "way out", "links", "way in", "host", "machine")):
        drawing.text_at(LEFT - 14, top + row * STEP + HEIGHT / 2, word, anchor="end", colour="soft", italic=True)
    for column, (name, colour, stations) in enumerate(WORLDS):
        x = LEFT + column * (COLUMN + GAP)
        drawing.text_at(x + COLUMN / 2, 36, name, size=15, anchor="middle", bold=True, colour=colour)
        for row, lines in enumerate(stations, 1):
            station(drawing, x, top + row * STEP, COLUMN, lines, colour)
        for row in range(rows + 1):
            start = top + row * STEP + HEIGHT - (4 if row == 0 else 0)
            arrow(drawing, x + COLUMN / 2, start, top + (row + 1) * STEP, colour)
    return drawing.svg()


def fast_wing() -> str:
    """The layers of the fast wing over the plain machines, who runs them, and what a delivery costs with each."""
    drawing = Drawing("The layers of the fast wing over the plain machines")
    left, width, scale, top = 150.0, 430.0, 38.0, 60.0
    plain, bars = top + (len(LAYERS) - 1) * STEP, left + width + 24
    drawing.width, drawing.height = left + width + 300, top + len(LAYERS) * STEP + 16
    drawing.text_at(bars, 30, "CPU time per delivery (us)", bold=True)
    for row, (place, what, costs) in enumerate(LAYERS):
        y = top + row * STEP
        station(drawing, left, y, width, (place, what), "teal" if "fast" in place else "grey" if costs else "violet")
        for line, (cost, colour) in enumerate(zip(costs, ("blue", "orange"), strict=False)):
            drawing.box(bars, y + 6 + line * 18, cost * scale, 14, colour, rounding=2)
            drawing.text_at(bars + 8 + cost * scale, y + 13 + line * 18, f"{cost:.2f}")
    for x, start, colour in ((left - 24, top, "teal"), (left - 12, plain, "violet")):
        drawing.line([(x + 6, start), (x, start), (x, plain + HEIGHT), (x + 6, plain + HEIGHT)], colour, 2)
    drawing.text_at(left - 32, top + STEP, "fast engine", anchor="end", colour="teal", bold=True)
    drawing.text_at(left - 32, plain + 8, "strict engine,", anchor="end", colour="violet", bold=True)
    drawing.text_at(left - 32, plain + 23, "Mininet,", anchor="end", colour="violet", bold=True)
    drawing.text_at(left - 32, plain + 38, "send, recv", anchor="end", colour="violet", bold=True)
    drawing.text_at(bars, plain + 14, "10 receivers that lose 1 %", colour="blue")
    drawing.text_at(bars, plain + 32, "1,000 receivers that lose 1 %", colour="orange")
    return drawing.svg()


FIGURES = {"three_worlds.svg": three_worlds, "fast_wing.svg": fast_wing}
"""File in docs/images and the function that draws it."""


def main() -> None:
    """Write all figures."""
    for name, draw in FIGURES.items():
        (IMAGES / name).write_text(draw())


if __name__ == "__main__":
    main()
