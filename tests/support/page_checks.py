"""Checks of a page's layout, as expressions for `Page.run`: texts that overlap, leave their place, or are hard to read."""

__all__ = ["FAINT", "OUTSIDE", "OVERLAPS"]

_SHOWN = """
const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const leaves = [...document.querySelectorAll('main *, header *, nav *')].filter((element) => shown(element)
  && [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
const scrolls = (element) => element.closest('.scroll, .links, pre, details');
"""

OVERLAPS = f"""(() => {{
{_SHOWN}
const found = [];
const controls = [...document.querySelectorAll('main button, main select, main input, nav button')].filter(shown);
const boxes = [...new Set([...leaves, ...controls])].filter((element) => !scrolls(element) && element.tagName !== 'OPTION')
  .map((element) => [element, element.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
const fixed = (element) => Boolean(element.closest('nav'));
boxes.sort((a, b) => a[1].top - b[1].top);
boxes.forEach(([a, one], i) => {{
  for (let j = i + 1; j < boxes.length && boxes[j][1].top < one.bottom - 1; j += 1) {{
    const [b, other] = boxes[j];
    if (a.contains(b) || b.contains(a) || fixed(a) !== fixed(b)) continue;
    const lines = a.namespaceURI.endsWith('svg') && b.namespaceURI.endsWith('svg') ? 3 : 1;
    if (other.top < one.bottom - lines && one.left < other.right - 1 && other.left < one.right - 1) {{
      found.push(`${{a.textContent.slice(0, 40)}} / ${{b.textContent.slice(0, 40)}}`);
    }}
  }}
}});
for (const plot of document.querySelectorAll('.plot')) {{
  const legend = plot.querySelector('.legend'), {{ l, t, w, h }} = plot._fullLayout._size, from = plot.getBoundingClientRect();
  const box = legend && legend.getBoundingClientRect();
  const over = box && box.bottom > from.top + t + 1 && box.top < from.top + t + h - 1;
  if (over && box.right > from.left + l + 1 && box.left < from.left + l + w - 1) found.push(`legend over curves: ${{plot.id}}`);
}}
return found;
}})()"""
"""Pairs of texts or controls whose boxes overlap (texts of figures by more than the empty part of a line), and legends that
overlap the curves of their figure. What a box with a scroll bar holds is not compared."""

OUTSIDE = f"""(() => {{
{_SHOWN}
const found = document.documentElement.scrollWidth > window.innerWidth ? ['the page is wider than the window'] : [];
for (const element of leaves) {{
  if (scrolls(element)) continue;
  const box = element.getBoundingClientRect();
  const plot = element.closest('.plot'), place = (plot || element.closest('.card') || document.body).getBoundingClientRect();
  if (box.left < place.left - 1 || box.right > place.right + 1 || (plot && box.bottom > place.bottom + 1)) {{
    found.push(`${{element.textContent.slice(0, 60)}} leaves its place`);
  }}
}}
return found;
}})()"""
"""Texts that reach beyond their figure, their card or the window."""

FAINT = f"""(() => {{
{_SHOWN}
const canvas = document.createElement('canvas').getContext('2d', {{ willReadFrequently: true }});
const parse = (text) => {{
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}};
const over = (top, below) => below.map((part, i) => top[i] * top[3] / 255 + part * (1 - top[3] / 255));
const ground = (element) => {{
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
}};
const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const light = (rgb) => rgb.map((part) => linear(part / 255))
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
const found = [];
for (const element of leaves) {{
  if (element.closest('.textpoint')) continue;
  const style = getComputedStyle(element), below = ground(element);
  const ink = parse(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const [dark, bright] = [light(over(ink, below)), light(below)].sort((a, b) => a - b);
  const ratio = (bright + 0.05) / (dark + 0.05);
  if (ratio < 4.5) found.push(`${{element.textContent.slice(0, 40)}}: ${{ratio.toFixed(2)}}`);
}}
return [...new Set(found)];
}})()"""
"""Texts with a contrast below 4.5 (WCAG 2.2 AA) to the background of the elements they stand in; numbers in the cells of heat
maps stand on other shapes and are left out."""
