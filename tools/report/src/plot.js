// A plot: axes, zoom and cursor by uPlot, the picture by whoever makes it, in pixels of the canvas. All plots of a group
// share their horizontal axis: zooming one zooms all, and a cursor in one shows in all.
//
// Pointer: move to read, drag to zoom, double click to see all. Keys: arrows move the cursor from stop to stop, with Shift ten at
// once; + and - zoom about it; Home, End, 0 and Escape as one expects.
import './paper.js';
import uPlot from 'uplot';
import {el} from './dom.js';
import {ink, onThemeChange} from './theme.js';

// In which charts are drawn for paper; the style stretches them to whatever the page has.
const kPaperWidth = 900;

export class Group {
  constructor(full) {
    this.full = full;
    this.range = [...full];
    this.plots = [];
    this.listeners = [];
  }
  // As far as the data reach, and no closer than a hundred-millionth of it.
  zoom(min, max) {
    const least = (this.full[1] - this.full[0]) * 1e-8;
    if (!(max - min > least)) return;
    this.range = [Math.max(min, this.full[0]), Math.min(max, this.full[1])];
    for (const plot of this.plots) plot.u.setScale('x', {min: this.range[0], max: this.range[1]});
    for (const listener of this.listeners) listener(this.range);
  }
  reset() {
    this.zoom(...this.full);
  }
  by(factor, at = (this.range[0] + this.range[1]) / 2) {
    this.zoom(at - (at - this.range[0]) * factor, at + (this.range[1] - at) * factor);
  }
  mark(x, from) {
    for (const plot of this.plots) if (plot !== from) plot.follow(x);
  }
}

export function zoomButtons(group) {
  const button = (label, title, act) => el('button', {type: 'button', title, 'aria-label': title, onclick: act}, label);
  return el(
    'span',
    {class: 'zoom'},
    button('+', 'zoom in', () => group.by(0.5)),
    button('\u2212', 'zoom out', () => group.by(2)),
    button('all', 'show all', () => group.reset()),
  );
}

// spec: {name, height, group, axes: {x, y, right?}, right?: room on the right, paint(u, c), read(x, y, u) -> {lines: [text]} or null,
//        stop(at, dx, dy, range) -> {x, y}, from {x, y} or undefined}
// axis: {format(value, span), size?, distr?, grid?, incrs?, splits?, space?, filter?}, and of those that stand upright {range(), dir?}
export class Plot {
  constructor(host, spec) {
    this.spec = spec;
    this.group = spec.group;
    this.tip = el('div', {class: 'tip', hidden: true});
    this.live = el('div', {class: 'unseen', 'aria-live': 'polite'});
    this.frame = el('div', {
      class: 'plot',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'chart',
      'aria-label': spec.name,
      onkeydown: (event) => this.key(event),
      onblur: () => this.leave(),
    });
    host.append(el('div', {class: 'plot-holder'}, this.frame, this.tip, this.live));
    this.u = new uPlot(this.options(), this.frameData(), this.frame);
    this.group.plots.push(this);
    new ResizeObserver(() => this.fit()).observe(this.frame);
    onThemeChange(({printing}) => this.fit(true, printing));
  }

  // uPlot draws nothing itself: two points give its scales a range.
  frameData() {
    const rows = [this.group.full, [0, 0]];
    if (this.spec.axes.right) rows.push([0, 0]);
    return rows;
  }

  options() {
    const {axes, height} = this.spec;
    const axis = (scale, side, it) => ({
      scale,
      side,
      size: it.size ?? 60,
      gap: 4,
      font: '12px system-ui, sans-serif',
      stroke: () => ink().dim,
      grid: {show: it.grid ?? true, width: 1, stroke: () => ink().grid},
      ticks: {show: it.grid ?? true, width: 1, size: 4, stroke: () => ink().grid},
      values: (u, splits) =>
        splits.map((value) => (value === null ? '' : it.format(value, u.scales[scale].max - u.scales[scale].min))),
      ...(it.incrs ? {incrs: it.incrs} : {}),
      ...(it.splits ? {splits: it.splits} : {}),
      ...(it.space ? {space: it.space} : {}),
      ...(it.filter ? {filter: it.filter} : {}),
    });
    const nothing = {paths: () => null, points: {show: false}};
    const list = [{...axis('x', 2, axes.x), size: 30}, axis('y', 3, axes.y)];
    const scales = {
      x: {
        time: false,
        auto: false,
        min: this.group.range[0],
        max: this.group.range[1],
        distr: axes.x.distr ?? 1,
        // uPlot would end a logarithmic axis at a power of ten.
        ...(axes.x.distr === 3 ? {range: (u, min, max) => [min, max]} : {}),
      },
      y: {range: () => axes.y.range(), distr: axes.y.distr ?? 1, dir: axes.y.dir ?? 1},
    };
    const series = [{}, {scale: 'y', ...nothing}];
    if (axes.right) {
      list.push({...axis('right', 1, axes.right), grid: {show: false}});
      scales.right = {range: () => axes.right.range()};
      series.push({scale: 'right', ...nothing});
    }
    return {
      width: Math.max(200, this.frame.clientWidth || 600),
      height,
      padding: [8, axes.right ? 0 : (this.spec.right ?? 14), 0, 0],
      legend: {show: false},
      axes: list,
      scales,
      series,
      cursor: {
        y: false,
        points: {show: false},
        drag: {x: true, y: false, setScale: false},
        bind: {
          dblclick: () => () => {
            this.group.reset();
            return null;
          },
        },
      },
      hooks: {draw: [(u) => this.paint(u)], setCursor: [(u) => this.moved(u)], setSelect: [(u) => this.selected(u)]},
    };
  }

  // On paper the place is not known before it is laid out.
  fit(always = false, printing = false) {
    const width = printing
      ? this.frame.closest('.grid')
        ? kPaperWidth / 2 - 10
        : kPaperWidth
      : this.frame.clientWidth;
    if (width < 50) return;
    if (always || width !== this.u.width) this.u.setSize({width, height: this.spec.height});
  }

  repaint() {
    this.u.redraw(false, true);
  }

  paint(u) {
    const c = u.ctx,
      {left, top, width, height} = u.bbox;
    c.save();
    c.beginPath();
    c.rect(left, top, width, height);
    c.clip();
    this.spec.paint(u, c);
    c.restore();
  }

  selected(u) {
    const {left, width} = u.select;
    if (width < 3) return;
    const from = u.posToVal(left, 'x'),
      to = u.posToVal(left + width, 'x');
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    this.group.zoom(from, to);
  }

  moved(u) {
    const {left, top} = u.cursor;
    if (this.following) return;
    if (left === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    this.show(u.posToVal(left, 'x'), u.posToVal(top, 'y'), left, top);
    this.group.mark(u.posToVal(left, 'x'), this);
  }

  show(x, y, left, top) {
    const read = this.spec.read(x, y, this.u);
    this.tip.hidden = !read;
    if (!read) return null;
    this.tip.replaceChildren(...read.lines.map((line, i) => el('div', {class: i === 0 ? 'first' : undefined}, line)));
    const room = this.frame.clientWidth,
      width = this.tip.offsetWidth,
      offset = this.u.over.offsetLeft;
    const beside = left + offset + 14;
    this.tip.style.left = `${beside + width > room ? Math.max(0, left + offset - width - 14) : beside}px`;
    this.tip.style.top = `${Math.max(0, top + 12)}px`;
    return read;
  }

  // The cursor of another plot of the group.
  follow(x) {
    this.following = true;
    this.tip.hidden = true;
    const left = x === null ? -10 : this.u.valToPos(x, 'x');
    this.u.setCursor({left, top: left < 0 ? -10 : 0}, true);
    this.following = false;
  }

  leave() {
    this.tip.hidden = true;
    this.at = undefined;
    this.group.mark(null, null);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowRight: [step, 0],
      ArrowLeft: [-step, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
      Home: [-Infinity, 0],
      End: [Infinity, 0],
    };
    const [min, max] = this.group.range;
    const middle = this.at?.x >= min && this.at?.x <= max ? this.at.x : undefined;
    if (event.key in moves) this.step(...moves[event.key]);
    else if (event.key === '+' || event.key === '=') this.group.by(0.5, middle);
    else if (event.key === '-') this.group.by(2, middle);
    else if (event.key === '0') this.group.reset();
    else if (event.key === 'Escape') this.leave();
    else return;
    event.preventDefault();
  }

  step(dx, dy) {
    const [min, max] = this.group.range;
    this.at = this.spec.stop(this.at, dx, dy, [min, max]);
    if (!this.at) return;
    const span = max - min;
    if (this.at.x < min) this.group.zoom(this.at.x - span * 0.1, this.at.x + span * 0.9);
    if (this.at.x > max) this.group.zoom(this.at.x - span * 0.9, this.at.x + span * 0.1);
    const left = this.u.valToPos(this.at.x, 'x'),
      top = this.at.y === undefined ? 20 : this.u.valToPos(this.at.y, 'y');
    this.following = true;
    this.u.setCursor({left, top}, true);
    this.following = false;
    const read = this.show(this.at.x, this.at.y, left, top);
    this.live.textContent = read ? read.lines.join('. ') : '';
    this.group.mark(this.at.x, this);
  }
}

// The last place of `sorted` whose value is at most `value`; -1 before the first.
export function lastAtMost(sorted, value) {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// What an axis on the right takes; plots without one leave as much, where they stand above one that has.
export const kRightGutter = 70;

// Increments of an axis in bytes: powers of two.
export const kByteIncrements = Array.from({length: 61}, (_, i) => 2 ** i);
