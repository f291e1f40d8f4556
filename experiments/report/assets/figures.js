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
const NARROW = 640;

function theme() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function colour(number) {
  const list = PALETTE[theme()];
  return list[number % list.length];
}

function clear(hex, share) {
  const n = parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${share})`;
}

function short(value) {
  return value === null || value === undefined ? "-" : typeof value === "number" ? Number(value.toPrecision(4)).toString() : String(value);
}

function area(x, low, high, fill, group, place) {
  const kept = x.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null && low[i] !== undefined);
  const there = [...kept, ...kept.slice().reverse()];
  return {
    type: "scatter", mode: "lines", x: there.map((i) => x[i]), fill: "toself", fillcolor: fill, line: { width: 0 }, hoverinfo: "skip",
    y: [...kept.map((i) => high[i]), ...kept.slice().reverse().map((i) => low[i])], showlegend: false, legendgroup: group, ...place,
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
    const told = mark.x.map((_, i) => `${short(mark.y[i])}  [${short(mark.low[i])}, ${short(mark.high[i])}]`);
    return [
      area(x, mark.low, mark.high, clear(hex, 0.16), mark.label, place),
      { ...base, mode: "lines+markers", line: { color: hex, width: 2.2 }, marker: { size: 6, color: hex }, text: told, hovertemplate: "%{text}" },
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
    return [{
      type: "heatmap", x: mark.x, y: mark.y, z: mark.z, coloraxis: "coloraxis", xgap: 2, ygap: 2, ...place,
      hovertemplate: `%{x}, %{y}<br>${label} %{z:.4g}<extra></extra>`, texttemplate: mark.x.length * mark.y.length <= 64 ? "%{z:.3g}" : "",
    }];
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


function axisOf(axis, extra) {
  const look = PAPER[theme()];
  return {
    title: { text: axis.label, font: { size: 13, color: look.soft }, standoff: 8 }, type: axis.categories ? "category" : axis.log ? "log" : "linear",
    gridcolor: look.faint, zerolinecolor: look.faint, linecolor: look.faint, tickfont: { color: look.soft, size: 12 }, automargin: true,
    ...(axis.categories ? { categoryorder: "array", categoryarray: axis.categories } : {}), ...(axis.log ? { dtick: 1 } : {}),
    ...extra,
  };
}

function columnsOf(count, width) {
  return width < NARROW ? 1 : count === 4 ? 2 : Math.min(count, 3);
}

/* Traces and layout of a figure for a place of this width. */
function drawing(figure, width) {
  const look = PAPER[theme()];
  const panels = figure.panels, columns = columnsOf(panels.length, width), lines = Math.ceil(panels.length / columns);
  const tall = figure.kind === "rows" ? Math.max(240, 30 * panels[0].marks.length + 110) : figure.kind === "bars" ? 44 * panels[0].marks.length + 150 : 360;
  const layout = {
    height: lines * (lines > 1 ? 320 : tall) + 20, margin: { l: 10, r: 12, t: panels.some((panel) => panel.title) ? 40 : 26, b: 10 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", color: look.ink, size: 13 },
    legend: { orientation: "h", y: -0.16 / lines, yanchor: "top", x: 0, font: { size: 12 }, traceorder: "normal" }, hovermode: "closest",
    // On a phone a finger on a figure scrolls the page.
    dragmode: width < NARROW ? false : "zoom", barmode: "stack", boxmode: "group",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.soft, activecolor: look.ink, orientation: "v" },
    hoverlabel: { bgcolor: look.card, bordercolor: look.faint, font: { color: look.ink } }, annotations: [],
    coloraxis: { colorscale: "Viridis", colorbar: { title: { text: figure.legend[0] || "", side: "right" }, thickness: 12, outlinewidth: 0 } },
  };
  const seen = new Set();
  const named = (label) => Boolean(label) && !seen.has(label) && Boolean(seen.add(label));
  const traces = [], gap = columns > 1 ? 0.075 : 0, rowGap = 70 / layout.height;
  panels.forEach((panel, n) => {
    const id = n ? String(n + 1) : "", column = n % columns, line = Math.floor(n / columns);
    const wide = (1 - gap * (columns - 1)) / columns, high = (1 - rowGap * (lines - 1)) / lines;
    const left = column * (wide + gap), top = 1 - line * (high + rowGap);
    const place = { xaxis: "x" + id, yaxis: "y" + id };
    const last = n + columns >= panels.length;
    layout["xaxis" + id] = axisOf({ ...figure.x, label: last ? figure.x.label : "" }, { domain: [left, left + wide], anchor: "y" + id, ...(n ? { matches: "x" } : {}) });
    layout["yaxis" + id] = axisOf({ ...figure.y, label: column ? "" : figure.y.label }, { domain: [Math.max(0, top - high), top], anchor: "x" + id, ...(n ? { matches: "y", showticklabels: !column } : {}) });
    if (panel.title) {
      layout.annotations.push({ text: panel.title, x: left + wide / 2, y: top, xref: "paper", yref: "paper", yanchor: "bottom", showarrow: false, font: { size: 13, color: look.soft } });
    }
    if (WHOLE[figure.kind]) {
      traces.push(...WHOLE[figure.kind](panel.marks, place, figure));
    } else {
      panel.marks.forEach((mark) => traces.push(...MARKS[figure.kind](mark, place, named, figure)));
    }
  });
  adjust(figure, layout, look);
  return { traces, layout };
}

function adjust(figure, layout, look) {
  if (figure.kind === "bars") {
    Object.assign(layout.xaxis, { tickformat: ".0%", range: [0, 1] });
    Object.assign(layout.yaxis, { type: "category", autorange: "reversed" });
  }
  if (figure.kind === "rows") {
    Object.assign(layout.yaxis, { type: "category" });
    layout.shapes = [{ type: "line", x0: 0, x1: 0, y0: 0, y1: 1, yref: "paper", line: { color: look.soft, width: 1.2, dash: "dot" } }];
  }
  if (figure.name === "theory") {
    layout.shapes = [{ type: "rect", xref: "paper", x0: 0, x1: 1, y0: -4, y1: 4, fillcolor: clear(colour(2), 0.12), line: { width: 0 }, layer: "below" }];
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
