"use strict";
/* Figures as plain data (experiments/report/figures.py) become traces and a layout of plotly. */

const PALETTE = {
  light: ["#2563c9", "#c2570c", "#15803d", "#7c3aed", "#d02c2c", "#0d7f86", "#a16207", "#be185d"],
  dark: ["#6ea8ff", "#f7a35c", "#5bd38a", "#b794ff", "#ff7b7b", "#4fd0d8", "#eac54f", "#f472b6"],
};
const PAPER = {
  light: { ink: "#1f2933", soft: "#5b6875", faint: "#e3e8ed", card: "#ffffff" },
  dark: { ink: "#e5eaf0", soft: "#9aa7b4", faint: "#2a3541", card: "#151c24" },
};
const SCALE = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
/* Colours of heat maps: viridis. */
const NARROW = 640;
const LETTER = 7;
/* Width of a letter of a title in pixels, on average and not less. */

function colour(number) {
  const list = PALETTE[theme()];
  return list[number % list.length];
}

function clear(hex, share) {
  const n = parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${share})`;
}

function area(x, low, high, fill, group, place) {
  const kept = x.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null && low[i] !== undefined);
  const there = [...kept, ...kept.slice().reverse()];
  return {
    type: "scatter", mode: "lines", x: there.map((i) => x[i]), fill: "toself", fillcolor: fill, line: { width: 0 }, hoverinfo: "skip",
    y: [...kept.map((i) => high[i]), ...kept.slice().reverse().map((i) => low[i])], showlegend: false, legendgroup: group, ...place,
  };
}

/* Smallest and largest value of all panels of a heat map. */
function limits(figure) {
  const all = figure.panels.flatMap((panel) => panel.marks.flatMap((mark) => mark.z.flat())).filter((value) => value !== null);
  return [Math.min(...all), Math.max(...all)];
}

/* The colour of a share of the scale, as [red, green, blue]. */
function scaled(share) {
  const at = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1), n = Math.min(Math.floor(at), SCALE.length - 2);
  const [low, high] = [SCALE[n], SCALE[n + 1]].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return low.map((part, i) => part + (high[i] - part) * (at - n));
}

/* Black or white, whichever is legible on this colour: one of them has a contrast of at least 4.5. */
function written(rgb) {
  const [red, green, blue] = rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/* The numbers in the cells of a heat map. */
function cells(mark, place, [least, most]) {
  const at = mark.y.flatMap((y, j) => mark.x.map((x, i) => ({ x, y, z: mark.z[j][i] }))).filter((cell) => cell.z !== null);
  return {
    type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false, x: at.map((cell) => cell.x), y: at.map((cell) => cell.y),
    text: at.map((cell) => Number(cell.z.toPrecision(3)).toString()), ...place,
    textfont: { size: 12, color: at.map((cell) => written(scaled(most > least ? (cell.z - least) / (most - least) : 0.5))) },
  };
}

const MARKS = {
  lines(mark, place, named) {
    const hex = colour(mark.colour);
    const x = mark.x;
    const base = { type: "scatter", x, y: mark.y, name: mark.label || "mean", legendgroup: mark.label, showlegend: named(mark.label), ...place };
    if (mark.theory) {
      return [{ ...base, mode: "lines", line: { color: hex, width: 2, dash: "dash" }, hovertemplate: "%{y:.4g}" }];
    }
    const hollow = (i) => Boolean(mark.hollow && mark.hollow[i]);
    const told = mark.x.map((_, i) => `${short(mark.y[i])}  [${short(mark.low[i])}, ${short(mark.high[i])}]${hollow(i) ? "  limited by a core of the machine" : ""}`);
    const dots = { size: x.map((_, i) => (hollow(i) ? 8 : 6)), color: x.map((_, i) => (hollow(i) ? PAPER[theme()].card : hex)), line: { color: hex, width: x.map((_, i) => (hollow(i) ? 2 : 0)) } };
    return [
      area(x, mark.low, mark.high, clear(hex, 0.16), mark.label, place),
      { ...base, mode: "lines+markers", line: { color: hex, width: 2.2 }, marker: dots, text: told, hovertemplate: "%{text}" },
    ];
  },
  bands(mark, place, named) {
    const hex = colour(mark.colour);
    const group = mark.label || "all";
    return [
      area(mark.x, mark.at[0], mark.at[4], clear(hex, 0.12), group, place),
      area(mark.x, mark.at[1], mark.at[3], clear(hex, 0.22), group, place),
      {
        type: "scatter", mode: "lines", x: mark.x, y: mark.at[2], line: { color: hex, width: 2.2 }, name: group, legendgroup: group,
        showlegend: named(group), hovertemplate: "%{y:.4g}", ...place,
      },
    ];
  },
  heat(mark, place, named, figure) {
    const label = figure.legend[0];
    const found = [{
      type: "heatmap", x: mark.x, y: mark.y, z: mark.z, coloraxis: "coloraxis", xgap: 2, ygap: 2, ...place,
      hovertemplate: `%{x}, %{y}<br>${label} %{z:.4g}<extra></extra>`,
    }];
    if (mark.x.length * mark.y.length <= 64) found.push(cells(mark, place, limits(figure)));
    return found;
  },
  boxes(mark, place, named) {
    const hex = colour(mark.colour);
    const rank = (n) => mark.at.map((row) => row[n]);
    return [{
      type: "box", x: mark.x, lowerfence: rank(0), q1: rank(1), median: rank(2), q3: rank(3), upperfence: rank(4),
      name: mark.label || "runs", legendgroup: mark.label, offsetgroup: mark.label, showlegend: named(mark.label), fillcolor: clear(hex, 0.25),
      line: { color: hex, width: 1.6 }, ...place,
    }];
  },
};

/* Marks that need all others of their panel. */
const WHOLE = {
  dots(marks, place, figure) {
    const labels = figure.legend.length ? figure.legend : [""];
    const found = labels.map((label, number) => {
      const mine = marks.filter((dot) => dot.colour === number);
      return {
        type: "scatter", mode: "markers", x: mine.map((dot) => dot.x), y: mine.map((dot) => dot.y), text: mine.map((dot) => dot.label),
        name: label || "points", showlegend: Boolean(label), ...place,
        marker: {
          color: clear(colour(number), 0.75), size: mine.map((dot) => (dot.front ? 11 : 8)),
          line: { color: mine.map((dot) => (dot.front ? PAPER[theme()].ink : colour(number))), width: mine.map((dot) => (dot.front ? 1.8 : 0.6)) },
        },
        hovertemplate: "%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>",
      };
    });
    const front = marks.filter((dot) => dot.front).sort((a, b) => a.x - b.x);
    if (front.length > 1) {
      found.unshift({
        type: "scatter", mode: "lines", x: front.map((dot) => dot.x), y: front.map((dot) => dot.y), name: "Pareto front", hoverinfo: "skip",
        line: { color: PAPER[theme()].soft, width: 1.5, dash: "dot" }, ...place,
      });
    }
    return found;
  },
  bars(marks, place, figure) {
    return figure.legend.map((part, number) => ({
      type: "bar", orientation: "h", y: marks.map((bar) => bar.label), x: marks.map((bar) => bar.parts[number]), name: part, ...place,
      marker: { color: part === "chance" ? PAPER[theme()].faint : part === "interaction" ? PAPER[theme()].soft : colour(number) },
      hovertemplate: `${part} %{x:.1%}<extra></extra>`,
    }));
  },
  rows(marks, place) {
    const shown = marks.slice().reverse();
    const hex = shown.map((row) => colour(row.clear ? 0 : 5));
    return [{
      type: "scatter", mode: "markers", x: shown.map((row) => row.mean), y: shown.map((row) => row.label), showlegend: false, ...place,
      marker: { size: 10, color: shown.map((row, i) => (row.clear ? hex[i] : PAPER[theme()].card)), line: { color: hex, width: 2 } },
      error_x: {
        type: "data", symmetric: false, color: PAPER[theme()].soft, thickness: 1.6, width: 4,
        array: shown.map((row) => (row.high === null ? 0 : row.high - row.mean)),
        arrayminus: shown.map((row) => (row.low === null ? 0 : row.mean - row.low)),
      },
      text: shown.map((row) => `${short(row.mean)}  [${short(row.low)}, ${short(row.high)}]`), hovertemplate: "%{y}: %{text}<extra></extra>",
    }];
  },
};


/* Text in lines of at most this many pixels, divided between words. */
function wrapped(text, width) {
  const most = Math.max(12, Math.floor(width / LETTER)), lines = [];
  for (const word of text.split(" ")) {
    const last = lines.length - 1;
    if (last >= 0 && lines[last].length + 1 + word.length <= most) lines[last] += ` ${word}`;
    else lines.push(word);
  }
  return lines.join("<br>");
}

/* An axis of plotly whose title fits into `room` pixels. */
function axisOf(axis, room, extra) {
  const look = PAPER[theme()];
  return {
    title: { text: wrapped(axis.label, room), font: { size: 13, color: look.soft }, standoff: 8 }, type: axis.categories ? "category" : axis.log ? "log" : "linear",
    gridcolor: look.faint, zerolinecolor: look.faint, linecolor: look.faint, tickfont: { color: look.soft, size: 12 }, automargin: true,
    ...(axis.categories ? { categoryorder: "array", categoryarray: axis.categories } : {}), ...(axis.ticks && axis.ticks.length ? { tickvals: axis.ticks, ticktext: axis.ticks.map(String) } : axis.log ? { dtick: 1 } : {}),
    ...extra,
  };
}

function columnsOf(count, width) {
  return width < NARROW ? 1 : count === 4 ? 2 : Math.min(count, 3);
}

/* Labels of the rows of a figure, in two lines where there is little room. */
function rowLabels(figure, width) {
  const labels = figure.panels[0].marks.map((mark) => mark.label);
  return width < NARROW ? labels.map((label) => label.replace(", ", ",<br>")) : labels;
}

/* Pixels beside the labels of rows. */
function besideRows(figure, width) {
  const longest = Math.max(0, ...rowLabels(figure, width).flatMap((label) => label.split("<br>")).map((line) => line.length));
  return width - longest * LETTER - 40;
}

/* Height of the legend: it stands above the figure and is as wide as it. */
function legendHeight(traces, width) {
  const shown = traces.filter((trace) => trace.showlegend !== false && trace.name);
  if (!shown.length) return 0;
  // Entries stand side by side if they fit into one line, and otherwise in columns of the widest.
  const entries = shown.map((trace) => trace.name.length * LETTER + 48), all = entries.reduce((sum, entry) => sum + entry, 0);
  const columns = all <= width ? shown.length : Math.max(1, Math.floor(width / Math.max(...entries)));
  return Math.ceil(shown.length / columns) * 20 + 12;
}

/* Traces and layout of a figure for a place of this width. */
function drawing(figure, width) {
  const look = PAPER[theme()], narrow = width < NARROW;
  const panels = figure.panels, columns = columnsOf(panels.length, width), lines = Math.ceil(panels.length / columns);
  const listed = figure.kind === "rows" || figure.kind === "bars", step = figure.kind === "bars" ? 44 : narrow ? 40 : 30;
  const inner = listed ? Math.max(150, step * panels[0].marks.length + 20) : lines > 1 ? 230 : 270;
  const titled = panels.some((panel) => panel.title), head = titled ? 26 : 10, foot = lines > 1 ? 34 : 0;
  const seen = new Set();
  const named = (label) => Boolean(label) && !seen.has(label) && Boolean(seen.add(label));
  const place = (n) => ({ xaxis: n ? `x${n + 1}` : "x", yaxis: n ? `y${n + 1}` : "y" });
  const traces = panels.flatMap((panel, n) => (WHOLE[figure.kind]
    ? WHOLE[figure.kind](panel.marks, place(n), figure) : panel.marks.flatMap((mark) => MARKS[figure.kind](mark, place(n), named, figure))));
  const legend = legendHeight(traces, width), plot = lines * inner + (lines - 1) * (foot + head);
  const layout = {
    height: legend + head + plot + 70, margin: { l: 10, r: 14, t: head + legend, b: 10 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", color: look.ink, size: 13 },
    legend: { orientation: "h", xref: "container", yref: "container", y: 1, yanchor: "top", x: 0, xanchor: "left", font: { size: 12.5 }, traceorder: "normal" }, hovermode: "closest",
    // On a phone a finger on a figure scrolls the page.
    dragmode: narrow ? false : "zoom", barmode: "stack", boxmode: "group",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.soft, activecolor: look.ink, orientation: "v" },
    hoverlabel: { bgcolor: look.card, bordercolor: look.faint, font: { color: look.ink } }, annotations: [],
    coloraxis: {
      colorscale: SCALE.map((hex, n) => [n / (SCALE.length - 1), hex]),
      colorbar: { title: { text: wrapped(figure.legend[0] || "", plot), side: "right", font: { size: 13, color: look.soft } }, tickfont: { size: 12, color: look.soft }, thickness: 12, outlinewidth: 0 },
    },
  };
  const gap = columns > 1 ? 0.075 : 0, wide = (1 - gap * (columns - 1)) / columns;
  const across = listed ? besideRows(figure, width) : width * wide - 60;
  panels.forEach((panel, n) => {
    const id = n ? String(n + 1) : "", column = n % columns, line = Math.floor(n / columns);
    const left = column * (wide + gap), top = 1 - line * (inner + foot + head) / plot;
    const last = n + columns >= panels.length;
    layout["xaxis" + id] = axisOf({ ...figure.x, label: last ? figure.x.label : "" }, across, { domain: [left, left + wide], anchor: "y" + id, ...(narrow ? { nticks: 5, tickangle: 0 } : {}), ...(n ? { matches: "x" } : {}) });
    layout["yaxis" + id] = axisOf({ ...figure.y, label: column ? "" : figure.y.label }, inner, { domain: [Math.max(0, top - inner / plot), top], anchor: "x" + id, ...(n && !figure.own_y ? { matches: "y", showticklabels: !column } : {}) });
    if (panel.title) {
      layout.annotations.push({ text: panel.title, x: left + wide / 2, y: top, xref: "paper", yref: "paper", yanchor: "bottom", showarrow: false, font: { size: 13, color: look.soft } });
    }
  });
  adjust(figure, layout, look, width);
  return { traces, layout };
}

function adjust(figure, layout, look, width) {
  if (figure.kind === "bars") {
    Object.assign(layout.xaxis, { tickformat: ".0%", range: [0, 1] });
    Object.assign(layout.yaxis, { type: "category", autorange: "reversed" });
  }
  if (figure.kind === "rows") {
    const labels = figure.panels[0].marks.map((mark) => mark.label);
    Object.assign(layout.yaxis, { type: "category", tickvals: labels, ticktext: rowLabels(figure, width) });
    layout.shapes = [{ type: "line", x0: 0, x1: 0, y0: 0, y1: 1, yref: "paper", line: { color: look.soft, width: 1.2, dash: "dot" } }];
  }
  if (figure.band) {
    layout.shapes = [{ type: "rect", xref: "paper", x0: 0, x1: 1, y0: figure.band[0], y1: figure.band[1], fillcolor: clear(colour(2), 0.12), line: { width: 0 }, layer: "below" }];
  }
}

const OPTIONS = {
  responsive: true, displaylogo: false, displayModeBar: true,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]], toImageButtonOptions: { format: "svg" },
};

function show(place, figure) {
  const { traces, layout } = drawing(figure, place.clientWidth || 900);
  return Plotly.react(place, traces, layout, OPTIONS);
}
