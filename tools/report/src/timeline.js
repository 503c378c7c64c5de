// What every stream and link did, and waited for: a Gantt chart as in the papers on pipelines. Boxes are coloured by what they do
// and carry the number of their microbatch; idle time is bare; a wait is a narrow hatched bar.
import {el, disclosure} from './dom.js';
import {counted, moment, time, words} from './format.js';
import {lastAtMost, Plot} from './plot.js';
import {dataTable} from './table.js';
import {fillOf, ink, kKinds, kStalls, swatch} from './theme.js';

const kStreamHeight = 30;
const kLinkHeight = 20;
const kThinLinkHeight = 10; // where there are many, as in a cluster
const kManyLinks = 4;
const kGap = 4;
const kTableRows = 300;
// Pixels that an operator takes on average before operators are drawn one by one: in a pipeline numbers matter more than names.
const kLeastOperator = {one: 7, several: 36};

// What belongs together in a picture from afar: steps of one kind, microbatch and chunk without a pause between them.
function blocksOf(track) {
  const first = [];
  for (let i = 0; i < track.start.length; ++i) {
    const goes =
      i > 0 &&
      track.kind[i] === track.kind[i - 1] &&
      track.microbatch[i] === track.microbatch[i - 1] &&
      track.start[i] === track.end[i - 1] &&
      (!track.chunk || track.chunk[i] === track.chunk[i - 1]);
    if (!goes) first.push(i);
  }
  return first;
}

class Row {
  constructor(track, top, linkHeight) {
    this.track = track;
    this.isStream = track.type === 'stream';
    this.rows = track.rows ?? 1;
    this.line = this.isStream ? kStreamHeight : linkHeight;
    this.height = this.line * this.rows;
    this.top = top;
    this.first = this.isStream ? blocksOf(track) : Array.from(track.start, (_, i) => i);
    this.blockStart = Float64Array.from(this.first, (i) => track.start[i]);
    this.longest = 0;
    for (let i = 0; i < track.start.length; ++i) this.longest = Math.max(this.longest, track.length[i]);
    this.longestStall = track.stalls.length.reduce((a, b) => Math.max(a, b), 0);
  }
  get middle() {
    return this.top + this.height / 2;
  }
  lastOf(block) {
    return (this.first[block + 1] ?? this.track.start.length) - 1;
  }
  // [first, last] slices of the boxes that a view draws: blocks from afar, steps from near.
  boxes(near) {
    return near
      ? {count: this.track.start.length, of: (i) => [i, i], starts: this.track.start}
      : {count: this.first.length, of: (b) => [this.first[b], this.lastOf(b)], starts: this.blockStart};
  }
}

export class TimelineChart {
  // shared: {group, names, kinds, causes, gutter, right}
  constructor(tracks, run, shared) {
    this.run = run;
    this.shared = shared;
    const linkHeight = tracks.filter(({type}) => type === 'link').length > kManyLinks ? kThinLinkHeight : kLinkHeight;
    let top = 0;
    this.rows = tracks.map((track) => {
      const row = new Row(track, top, linkHeight);
      top += row.height + kGap;
      return row;
    });
    this.element = el('figure', {class: 'chart'}, el('figcaption', {}, this.caption(tracks)));
    this.plot = new Plot(this.element, {
      name: `timeline of ${run.label}. Left and right move from step to step, up and down between streams and links.`,
      height: top + 42,
      group: shared.group,
      axes: {
        x: {format: moment},
        y: {
          range: () => [0, top],
          dir: -1,
          grid: false,
          size: shared.gutter,
          splits: () => this.rows.map((row) => row.middle),
          format: (value) => this.nameAt(value),
        },
      },
      right: shared.right,
      paint: (u, c) => this.paint(u, c),
      read: (x, y, u) => this.read(x, y, u),
      stop: (at, dx, dy, range) => this.stop(at, dx, dy, range),
    });
    this.element.append(disclosure('as a table', () => this.table()));
  }

  caption(tracks) {
    const steps = tracks.reduce(
      (sum, track) => sum + (track.count ?? track.start.map(() => 1)).reduce((a, b) => a + b, 0),
      0,
    );
    const thinned = tracks.some((track) => track.count);
    return `streams and links: ${counted(steps, 'step')}${thinned ? ', the shortest drawn together' : ''}; idle time is bare`;
  }
  nameAt(value) {
    const name = this.rows.find((row) => row.middle === value)?.track.label ?? '';
    return name.length > 22 ? name.slice(0, 21) + '\u2026' : name;
  }

  near(row, u) {
    const from = lastAtMost(row.track.start, u.scales.x.min),
      to = lastAtMost(row.track.start, u.scales.x.max);
    const operators = Math.max(1, to - from);
    return (
      !row.isStream ||
      u.bbox.width / (devicePixelRatio || 1) / operators >=
        kLeastOperator[this.run.microbatches > 1 ? 'several' : 'one']
    );
  }

  paint(u, c) {
    const scale = devicePixelRatio || 1;
    c.textBaseline = 'middle';
    for (const row of this.rows) {
      const y = u.valToPos(row.top, 'y', true),
        line = u.valToPos(row.top + row.line, 'y', true) - y;
      c.fillStyle = ink().row;
      c.fillRect(u.bbox.left, y, u.bbox.width, line * row.rows);
      this.paintStalls(u, c, row, y, line, scale);
      this.paintBoxes(u, c, row, y, line, scale);
    }
  }

  paintStalls(u, c, row, y, line, scale) {
    const {cause, start, length} = row.track.stalls;
    const px = (t) => u.valToPos(t, 'x', true);
    let last = -1;
    for (
      let i = Math.max(0, lastAtMost(start, u.scales.x.min - row.longestStall));
      i < start.length && start[i] <= u.scales.x.max;
      ++i
    ) {
      const from = px(start[i]),
        to = px(start[i] + length[i]);
      if (to < last) continue;
      last = Math.max(to, from + scale);
      c.fillStyle = fillOf(kStalls[this.shared.causes[cause[i]]], scale);
      c.fillRect(from, y + line * 0.36, last - from, line * 0.28);
    }
  }

  paintBoxes(u, c, row, y, line, scale) {
    const {track} = row,
      near = this.near(row, u),
      boxes = row.boxes(near);
    const px = (t) => u.valToPos(t, 'x', true);
    const last = new Float64Array(row.rows).fill(-1);
    let b = Math.max(0, lastAtMost(boxes.starts, u.scales.x.min - (near ? row.longest : 0)));
    for (; b < boxes.count && boxes.starts[b] <= u.scales.x.max; ++b) {
      const [i, j] = boxes.of(b),
        lane = track.row?.[i] ?? 0;
      const from = px(track.start[i]),
        to = px(track.end[j]);
      if (to < u.bbox.left || to <= last[lane]) continue; // hidden, or in a pixel that is drawn already
      const left = Math.max(from, u.bbox.left),
        right = Math.min(Math.max(to, from + scale), u.bbox.left + u.bbox.width);
      last[lane] = to - from < scale ? Math.floor(from) + scale : to;
      this.paintBox(c, track, i, j, {left, right, top: y + lane * line + scale, height: line - 2 * scale, scale, near});
    }
  }

  // A pair is drawn as the two that run at once, one above the other.
  paintBox(c, track, i, j, box) {
    const pair = i === j && track.pairs.get(i);
    if (!pair) return this.paintOne(c, track, i, j, {...box, kind: track.kind[i]});
    const [first, firstBatch, second, secondBatch] = pair,
      height = box.height / 2;
    this.paintOne(c, track, i, j, {...box, height, kind: first, number: firstBatch});
    this.paintOne(c, track, i, j, {...box, top: box.top + height, height, kind: second, number: secondBatch});
  }

  paintOne(c, track, i, j, {left, right, top, height, scale, near, kind, number}) {
    const style = kKinds[this.shared.kinds[kind]],
      width = right - left;
    c.fillStyle = fillOf(style, scale);
    c.fillRect(left, top, width, height);
    const isPale = number === undefined && track.chunk && track.chunk[i] % 2 === 1;
    if (isPale) {
      // chunks of a device are told apart by their shade, as in the papers
      c.fillStyle = 'rgba(255,255,255,0.28)';
      c.fillRect(left, top, width, height);
    }
    if (width > 3 * scale) {
      c.strokeStyle = ink().edge;
      c.lineWidth = scale;
      c.strokeRect(left + 0.5 * scale, top + 0.5 * scale, width - scale, height - scale);
    }
    const text = number === undefined ? this.textIn(track, i, j, near, width / scale) : String(number);
    if (!text) return;
    const size = [12, 10, 8.5, 7.5].find((it) => {
      c.font = `${it * scale}px system-ui, sans-serif`;
      return it * scale < height && c.measureText(text).width <= width - scale;
    });
    if (!size) return;
    c.textAlign = 'center';
    if (style[1] !== 'solid') {
      // a label is read on a plain ground
      const wide = c.measureText(text).width + 4 * scale;
      c.fillStyle = style[0];
      c.fillRect(
        Math.max(left + scale, (left + right - wide) / 2),
        top + Math.max(scale, height / 2 - 8 * scale),
        Math.min(wide, width - 2 * scale),
        Math.min(height - 2 * scale, 16 * scale),
      );
    }
    c.fillStyle = isPale && style[2] === '#ffffff' ? '#0b1420' : style[2];
    c.fillText(text, (left + right) / 2, top + height / 2 + scale * 0.5);
  }

  textIn(track, i, j, near, width) {
    if (width < 7) return '';
    const number = track.microbatch[i] >= 0 && this.run.microbatches > 1 ? String(track.microbatch[i]) : '';
    if (number && (i !== j || width < 60)) return number;
    if (!near && !number) return width > 50 ? words(this.shared.kinds[track.kind[i]]) : '';
    if (width < 40) return number;
    const name = this.shared.names[track.name[i]];
    return name.length * 5.6 <= width
      ? name
      : number ||
          name
            .split('/')
            .pop()
            .slice(0, Math.floor(width / 6));
  }

  rowAt(y) {
    return this.rows.find((row) => y >= row.top && y < row.top + row.height + kGap);
  }

  // The box of a row under a moment.
  boxAt(row, x, y, u) {
    const near = this.near(row, u),
      boxes = row.boxes(near),
      lane = Math.floor((y - row.top) / row.line);
    const pixel = ((u.scales.x.max - u.scales.x.min) / u.bbox.width) * (devicePixelRatio || 1);
    for (let b = lastAtMost(boxes.starts, x + pixel), tries = 0; b >= 0 && tries < 64; --b, ++tries) {
      const [i, j] = boxes.of(b);
      if (row.rows > 1 && row.track.row[i] !== lane) continue;
      if (row.track.end[j] + pixel >= x) return [i, j];
      if (row.rows === 1) return null;
    }
    return null;
  }

  read(x, y, u) {
    const row = this.rowAt(y);
    if (!row) return null;
    const at = this.exact;
    const box = at && at.row === row && row.track.start[at.box[0]] === x ? at.box : this.boxAt(row, x, y, u);
    if (box) return {lines: this.linesOf(row, box)};
    const {cause, start, length} = row.track.stalls;
    const s = lastAtMost(start, x);
    if (s >= 0 && start[s] + length[s] >= x)
      return {
        lines: [
          `${row.track.label} waits ${time(length[s])} for ${this.shared.causes[cause[s]]}`,
          `from ${time(start[s])} to ${time(start[s] + length[s])}`,
        ],
      };
    return {lines: [`${row.track.label}: idle at ${time(Math.round(x))}`]};
  }

  linesOf(row, [i, j]) {
    const {track} = row,
      kind = this.shared.kinds[track.kind[i]];
    const name = this.shared.names[track.name[i]],
      microbatch = track.microbatch[i];
    const lines = [i === j ? `${words(kind)}: ${name}` : `${words(kind)}: ${counted(j - i + 1, 'step')}, from ${name}`];
    if (this.run.microbatches > 1 && microbatch >= 0) lines.push(`microbatch ${microbatch}`);
    if (track.count && track.count[i] > 1) lines.push(`${counted(track.count[i], 'short step')} drawn together`);
    if (kind === 'recomputation') lines.push('has run before');
    lines.push(
      `${time(track.start[i])} to ${time(track.end[j])}: ${time(track.end[j] - track.start[i])} on ${track.label}`,
    );
    return lines;
  }

  stop(at, dx, dy, [min]) {
    if (!this.rows.length) return undefined;
    let r = this.exact ? this.rows.indexOf(this.exact.row) : 0;
    const moves = at !== undefined && dy === 0;
    r = Math.min(this.rows.length - 1, Math.max(0, r + (at === undefined ? 0 : dy)));
    const row = this.rows[r],
      boxes = row.boxes(this.near(row, this.plot.u));
    const here = at === undefined ? min : at.x;
    let b = Math.max(0, lastAtMost(boxes.starts, here));
    if (moves) b = Number.isFinite(dx) ? Math.min(boxes.count - 1, Math.max(0, b + dx)) : dx > 0 ? boxes.count - 1 : 0;
    const box = boxes.of(b);
    this.exact = {row, box};
    const lane = row.track.row?.[box[0]] ?? 0;
    return {x: row.track.start[box[0]], y: row.top + (lane + 0.5) * row.line};
  }

  table() {
    const rows = [];
    for (const row of this.rows)
      for (let b = 0; b < row.first.length && rows.length < kTableRows; ++b) {
        const i = row.first[b],
          j = row.isStream ? row.lastOf(b) : i,
          {track} = row;
        rows.push([
          track.label,
          words(this.shared.kinds[track.kind[i]]),
          this.shared.names[track.name[i]] + (j > i ? ` and ${j - i} more` : ''),
          track.microbatch[i] >= 0 ? String(track.microbatch[i]) : '',
          time(track.start[i]),
          time(track.end[j]),
        ]);
      }
    return dataTable(
      ['on', 'what', 'step', 'microbatch', 'from', 'to'],
      rows,
      rows.length === kTableRows ? `the first ${kTableRows}` : undefined,
    );
  }
}

export function kindLegend(tracks, shared) {
  const kinds = new Set(),
    causes = new Set();
  for (const track of tracks) {
    track.kind.forEach((kind, i) => {
      const [first, , second] = track.pairs.get(i) ?? [kind, 0, kind];
      kinds.add(shared.kinds[first]).add(shared.kinds[second]);
    });
    for (const cause of track.stalls.cause) causes.add(shared.causes[cause]);
  }
  const key = (style, text) => el('span', {class: 'key'}, swatch(style), text);
  return el(
    'div',
    {class: 'legend'},
    Object.keys(kKinds)
      .filter((kind) => kinds.has(kind))
      .map((kind) => key(kKinds[kind], words(kind))),
    Object.keys(kStalls)
      .filter((cause) => causes.has(cause))
      .map((cause) => key(kStalls[cause], `waits for ${cause}`)),
  );
}
