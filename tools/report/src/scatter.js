// Points in two quantities, those that nothing beats joined by a line (a Pareto front) or filled; or curves, with their bounds
// dashed. Each point is reached by keys.
import {disclosure, el} from './dom.js';
import {captioned, quantity, tick} from './format.js';
import {Group, kByteIncrements, Plot} from './plot.js';
import {dataTable} from './table.js';
import {ink} from './theme.js';

const kColours = ['#4477aa', '#e0637a', '#3d9a50', '#d9a93a', '#aa5599', '#5bb8d6', '#98a2ae'];
const kShapes = ['circle', 'square', 'triangle', 'diamond', 'cross', 'ring', 'bar'];
const kFillable = kShapes.filter((kind) => kind !== 'cross' && kind !== 'ring');

function shape(c, kind, x, y, r, hollow = false) {
  c.beginPath();
  if (kind === 'circle' || kind === 'ring') c.arc(x, y, r, 0, 7);
  else if (kind === 'square') c.rect(x - r, y - r, 2 * r, 2 * r);
  else if (kind === 'bar') c.rect(x - r * 1.4, y - r * 0.5, r * 2.8, r);
  else if (kind === 'triangle') {
    c.moveTo(x, y - r * 1.2);
    c.lineTo(x + r * 1.2, y + r);
    c.lineTo(x - r * 1.2, y + r);
    c.closePath();
  } else if (kind === 'diamond') {
    c.moveTo(x, y - r * 1.3);
    c.lineTo(x + r * 1.3, y);
    c.lineTo(x, y + r * 1.3);
    c.lineTo(x - r * 1.3, y);
    c.closePath();
  } else {
    c.moveTo(x - r, y - r);
    c.lineTo(x + r, y + r);
    c.moveTo(x - r, y + r);
    c.lineTo(x + r, y - r);
  }
  if (hollow || kind === 'ring' || kind === 'cross') c.stroke();
  else c.fill();
}

function rangeOf(values, log) {
  const least = Math.min(...values),
    most = Math.max(...values);
  if (log && least > 0) return [least / 1.3, most * 1.3];
  return [Math.min(0, least), most > 0 ? most * 1.08 : 1];
}

const kMostNames = 12;
const kNameGap = 8; // pixels between two names

// A logarithmic axis has lines at 1, 2, 3, ... 10, 20, ..., of which 1, 2, 5, 10, ... have their names; one of bytes at powers of
// two, of which at most ten have.
const logAxis = {
  splits(u, side, min, max) {
    const all = [];
    for (let ten = 10 ** Math.floor(Math.log10(min)); ten <= max; ten *= 10)
      for (let digit = 1; digit < 10; ++digit) if (digit * ten >= min && digit * ten <= max) all.push(digit * ten);
    return all;
  },
  filter: (u, splits) => splits.map((value) => (/^[125]e/.test(value.toExponential(0)) ? value : null)),
};
const byteAxis = {
  splits(u, side, min, max) {
    const all = [];
    for (let value = 2 ** Math.ceil(Math.log2(min)); value <= max; value *= 2) all.push(value);
    return all;
  },
  filter: (u, splits) => splits.map((value, i) => (i % Math.ceil(splits.length / 10) === 0 ? value : null)),
};

// Points at one place are named together, by the first of them.
function labelsOf(points) {
  const firsts = new Map(),
    labels = new Map();
  for (const point of points) {
    const place = `${point.x} ${point.y}`,
      first = firsts.get(place);
    if (first) labels.set(first, `${labels.get(first)}; ${point.label}`);
    else {
      labels.set(point, point.label);
      firsts.set(place, point);
    }
  }
  return labels;
}

// Places on a canvas that a name should leave bare: the points, and the line that joins some of them, every few pixels.
function drawnPlaces(all, joined, step) {
  const places = [...all];
  joined.slice(1).forEach(([x, y], i) => {
    const [fromX, fromY] = joined[i],
      count = Math.ceil(Math.hypot(x - fromX, y - fromY) / step);
    for (let k = 1; k < count; ++k) places.push([fromX + ((x - fromX) * k) / count, fromY + ((y - fromY) * k) / count]);
  });
  return places;
}

// Where a name of this width stands beside its point: in that of the four corners that has the least below it. Null where it
// would leave the picture, or lie over another name.
function cornerFor([x, y], width, scale, {left, top, width: room, height}, places, written) {
  let best = null;
  for (const [right, down] of [
    [1, -1],
    [1, 1],
    [-1, -1],
    [-1, 1],
  ]) {
    const begin = right > 0 ? x + 9 * scale : x - 9 * scale - width,
      box = {begin, end: begin + width, y: y + 10 * scale * down};
    if (box.begin < left || box.end > left + room || box.y < top + 8 * scale || box.y > top + height - 8 * scale) continue;
    if (written.some((it) => box.begin < it.end + kNameGap * scale && it.begin < box.end + kNameGap * scale && Math.abs(it.y - box.y) < 15 * scale)) continue;
    box.below = places.filter(
      ([px, py]) => px > begin - 4 * scale && px < box.end + 4 * scale && Math.abs(py - box.y) < 9 * scale,
    ).length;
    if (!best || box.below < best.below) best = box;
  }
  return best;
}

// The points of each series from left to right, and where their bounds stand.
function paintCurves(c, series, points, place, scale) {
  const line = (places, dashes) => {
    c.setLineDash(dashes.map((length) => length * scale));
    c.beginPath();
    for (const at of places) c.lineTo(...at);
    c.stroke();
  };
  c.lineWidth = 1.5 * scale;
  series.forEach((name, k) => {
    const own = points.filter((point) => point.series === name),
      bounded = own.filter((point) => point.bound !== undefined);
    c.strokeStyle = kColours[k % kColours.length];
    line(
      own.map((point) => place(point.x, point.y)),
      [],
    );
    line(
      bounded.map((point) => place(point.x, point.bound)),
      [5, 4],
    );
  });
  c.setLineDash([]);
}

export function scatterSection(section) {
  const points = [...section.points].sort((a, b) => a.x - b.x || a.y - b.y);
  if (!points.length) return el('p', {class: 'dim'}, 'no configuration is feasible');
  const series = [...new Set(points.map((point) => point.series))].sort(); // alike in all charts of a page
  const element = el(
    'figure',
    {class: 'chart'},
    el(
      'figcaption',
      {},
      `${captioned(section.y.label, section.y.unit)} against ${captioned(section.x.label, section.x.unit)}`,
    ),
  );
  const group = new Group(
    rangeOf(
      points.map((point) => point.x),
      section.x.log,
    ),
  );
  const yRange = rangeOf(
    points.flatMap((point) => (point.bound === undefined ? [point.y] : [point.y, point.bound])),
    section.y.log,
  );
  const nearest = (x, y, u) => {
    let best = null,
      least = 28 * 28;
    for (const point of points) {
      const dx = u.valToPos(point.x, 'x') - u.valToPos(x, 'x'),
        dy = u.valToPos(point.y, 'y') - u.valToPos(y, 'y');
      if (dx * dx + dy * dy < least) [best, least] = [point, dx * dx + dy * dy];
    }
    return best;
  };
  const shapes = section.joined || section.curves ? kShapes : kFillable; // others would look alike on and off the front
  let chosen = -1;
  const axis = (it) => ({
    format: (value) => tick(value, it.unit),
    distr: it.log ? 3 : 1,
    ...(it.log ? (it.unit === 'bytes' ? byteAxis : logAxis) : it.unit === 'bytes' ? {incrs: kByteIncrements} : {}),
  });
  const longest = Math.max(...points.map((point) => tick(point.y, section.y.unit).length));
  const labels = labelsOf(points.filter((point) => point.best));
  new Plot(element, {
    name: `${section.heading}: ${section.y.label} against ${section.x.label}. Left and right move from point to point.`,
    height: 340,
    group,
    axes: {x: {...axis(section.x), space: () => 90}, y: {...axis(section.y), size: 24 + 7 * longest, range: () => yRange}},
    paint(u, c) {
      const scale = devicePixelRatio || 1,
        place = (x, y) => [u.valToPos(x, 'x', true), u.valToPos(y, 'y', true)],
        at = (point) => place(point.x, point.y);
      if (section.joined) {
        c.strokeStyle = ink().line;
        c.lineWidth = 1.5 * scale;
        c.beginPath();
        for (const point of points) if (point.best) c.lineTo(...at(point));
        c.stroke();
      }
      if (section.curves) paintCurves(c, series, points, place, scale);
      for (const point of points) {
        const k = series.indexOf(point.series),
          [x, y] = at(point);
        c.fillStyle = c.strokeStyle = kColours[k % kColours.length];
        c.lineWidth = 2 * scale;
        c.globalAlpha = point.best || !section.joined ? 1 : 0.6;
        shape(c, shapes[k % shapes.length], x, y, (point.best ? 6 : 4.5) * scale, !section.joined && !section.curves && !point.best);
        c.globalAlpha = 1;
      }
      c.font = `${12 * scale}px system-ui, sans-serif`;
      c.textBaseline = 'middle';
      c.textAlign = 'left';
      c.lineJoin = 'round';
      const front = section.joined ? points.filter((point) => point.best).map(at) : [],
        places = drawnPlaces(points.map(at), front, 6 * scale),
        written = []; // a name without a place of its own is left to the pointer
      for (const [point, label] of labels) {
        const corner = cornerFor(at(point), c.measureText(label).width, scale, u.bbox, places, written);
        if (!corner || written.length === kMostNames) continue;
        written.push(corner);
        c.strokeStyle = ink().paper;
        c.lineWidth = 4 * scale;
        c.strokeText(label, corner.begin, corner.y);
        c.fillStyle = ink().text;
        c.fillText(label, corner.begin, corner.y);
      }
    },
    read(x, y, u) {
      const point = points[chosen]?.x === x && points[chosen]?.y === y ? points[chosen] : nearest(x, y, u);
      if (!point) return null;
      const lines = [
        point.label,
        `${section.x.label} ${quantity(point.x, section.x.unit)}`,
        `${section.y.label} ${quantity(point.y, section.y.unit)}`,
      ];
      if (point.series) lines.splice(1, 0, point.series);
      if (point.bound !== undefined) lines.push(`no plan of its kind passes ${quantity(point.bound, section.y.unit)}`);
      if (point.best) lines.push(section.joined ? 'nothing is better in both' : 'on the front');
      return {lines};
    },
    stop(at, dx) {
      chosen = Math.min(
        points.length - 1,
        Math.max(
          0,
          at === undefined ? 0 : chosen + (Number.isFinite(dx) ? dx : dx > 0 ? points.length : -points.length),
        ),
      );
      return {x: points[chosen].x, y: points[chosen].y};
    },
  });
  if (series.length > 1 || series[0])
    element.append(
      el(
        'div',
        {class: 'legend'},
        series.map((name, k) => legendOf(name, kColours[k % kColours.length], shapes[k % shapes.length])),
      ),
    );
  element.append(
    disclosure('as a table', () =>
      dataTable(
        [section.x.label, section.y.label, 'configuration', 'kind', section.curves ? 'bound' : ''],
        points.map((point) => [
          quantity(point.x, section.x.unit),
          quantity(point.y, section.y.unit),
          point.label,
          point.series,
          point.best ? 'on the front' : point.bound === undefined ? '' : quantity(point.bound, section.y.unit),
        ]),
      ),
    ),
  );
  return element;
}

function legendOf(name, colour, kind) {
  const canvas = el('canvas', {width: '24', height: '20', class: 'swatch', 'aria-hidden': 'true'});
  const c = canvas.getContext('2d');
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 3;
  shape(c, kind, 12, 10, 6);
  return el('span', {class: 'key'}, canvas, name);
}
