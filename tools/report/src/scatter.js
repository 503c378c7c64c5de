// Points in two quantities, those that nothing beats joined by a line (a Pareto front) or filled. Each is reached by keys.
import {disclosure, el} from './dom.js';
import {bare, captioned, quantity} from './format.js';
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

// Of a logarithmic axis 1, 2, 5, 10, 20, ... have their names.
const roundOnes = (u, splits) => splits.map((value) => (/^[125]e/.test(value.toExponential()) ? value : null));

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
    points.map((point) => point.y),
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
  const shapes = section.joined ? kShapes : kFillable; // others would look alike on and off the front
  let chosen = -1;
  const axis = (it) => ({
    format: (value) => bare(value, it.unit),
    distr: it.log ? 3 : 1,
    ...(it.log ? {filter: roundOnes} : {}),
    ...(it.unit === 'bytes' && !it.log ? {incrs: kByteIncrements} : {}),
  });
  const longest = Math.max(...points.map((point) => bare(point.y, section.y.unit).length));
  const labels = labelsOf(points.filter((point) => point.best));
  new Plot(element, {
    name: `${section.heading}: ${section.y.label} against ${section.x.label}. Left and right move from point to point.`,
    height: 340,
    group,
    axes: {x: {...axis(section.x), space: () => 90}, y: {...axis(section.y), size: 24 + 7 * longest, range: () => yRange}},
    paint(u, c) {
      const scale = devicePixelRatio || 1,
        at = (point) => [u.valToPos(point.x, 'x', true), u.valToPos(point.y, 'y', true)];
      if (section.joined) {
        c.strokeStyle = ink().line;
        c.lineWidth = 1.5 * scale;
        c.beginPath();
        for (const point of points) if (point.best) c.lineTo(...at(point));
        c.stroke();
      }
      c.font = `${12 * scale}px system-ui, sans-serif`;
      c.textBaseline = 'middle';
      const written = []; // a name that would lie over another one is left to the pointer
      for (const point of points) {
        const k = series.indexOf(point.series),
          [x, y] = at(point);
        c.fillStyle = c.strokeStyle = kColours[k % kColours.length];
        c.lineWidth = 2 * scale;
        c.globalAlpha = point.best || !section.joined ? 1 : 0.6;
        shape(c, shapes[k % shapes.length], x, y, (point.best ? 6 : 4.5) * scale, !section.joined && !point.best);
        c.globalAlpha = 1;
        const label = labels.get(point);
        if (!label || written.length === kMostNames) continue;
        const width = c.measureText(label).width,
          isRight = x + width + 12 * scale > u.bbox.left + u.bbox.width,
          begin = isRight ? x - 10 * scale - width : x + 10 * scale,
          end = begin + width + 6 * scale;
        if (written.some((it) => begin < it.end && it.begin < end && Math.abs(it.y - y) < 14 * scale)) continue;
        written.push({begin, end, y});
        c.fillStyle = ink().text;
        c.textAlign = isRight ? 'right' : 'left';
        c.fillText(label, x + (isRight ? -10 : 10) * scale, y - 9 * scale);
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
        [section.x.label, section.y.label, 'configuration', 'kind', ''],
        points.map((point) => [
          quantity(point.x, section.x.unit),
          quantity(point.y, section.y.unit),
          point.label,
          point.series,
          point.best ? 'on the front' : '',
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
