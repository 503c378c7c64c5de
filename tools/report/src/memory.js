// How full a memory is over time: what is alive, stacked by class, under the line of what plans may use.
import {aliveAt} from './data.js';
import {el, disclosure, toggle} from './dom.js';
import {bytes, moment, percent, time, words} from './format.js';
import {kByteIncrements, lastAtMost, Plot} from './plot.js';
import {dataTable} from './table.js';
import {fillOf, ink, kClasses, swatch} from './theme.js';

const kLargest = 6;
const kTableRows = 200;

// Stacks in the order of kClasses, what stays longest first.
function orderOf(classes) {
  const order = Object.keys(kClasses);
  return [...classes].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

export class MemoryChart {
  // shared: {group, common, hidden: Set of classes, stays, names, gutter, right}
  constructor(memory, run, shared, height) {
    this.memory = memory;
    this.run = run;
    this.shared = shared;
    this.classes = orderOf(memory.classes);
    this.total = new Float64Array(memory.times.length);
    this.element = el('figure', {class: 'chart'}, el('figcaption', {}, this.caption()));
    this.sum();
    this.plot = new Plot(this.element, {
      name: `${memory.name} over time, of ${run.label}. Arrow keys move from change to change.`,
      height,
      group: shared.group,
      axes: {
        x: {format: moment},
        y: {
          range: () => this.range(),
          format: (value) => bytes(value),
          size: shared.gutter,
          incrs: kByteIncrements,
          space: () => 26,
        },
      },
      right: shared.right,
      paint: (u, c) => this.paint(u, c),
      read: (x, y, u) => this.read(x, u),
      stop: (at, dx, dy, range) => this.stop(at, dx, range),
    });
    this.element.append(disclosure('as a table', () => this.table()));
  }

  caption() {
    const {name, peak, reserved, thinned} = this.memory,
      {most, of} = this.limit();
    let text = `${name}: peak ${bytes(peak.bytes)} after ${time(peak.time)}`;
    if (most !== undefined) text += `, ${percent(peak.bytes / most)} of ${of}`;
    if (reserved !== undefined) text += `; ${bytes(reserved)} reserved by the allocator`;
    if (thinned) text += '; drawn from fewer moments than there were, each with its peaks';
    return text;
  }

  sum() {
    this.total.fill(0);
    for (const {name, values} of this.classes)
      if (!this.shared.hidden.has(name)) for (let i = 0; i < values.length; ++i) this.total[i] += values[i];
    this.most = this.total.reduce((a, b) => Math.max(a, b), 0);
  }

  // The budget that the policy was given; of a plan alone, what it keeps to; else what plans may use.
  limit() {
    const {usable, limited, budget} = this.memory;
    if (budget !== undefined) return {most: budget, words: `${bytes(budget)}, the budget`, of: `a budget of ${bytes(budget)}`};
    if (usable === undefined) return {};
    const size = bytes(usable);
    return limited
      ? {most: usable, words: `${size}, the limit of the plan`, of: `the ${size} that the plan keeps to`}
      : {most: usable, words: `${size} usable`, of: size};
  }
  // The limit is in the picture unless that would flatten the rest. On one scale for all runs the fullest of them counts.
  highest() {
    return this.shared.common.on ? this.shared.common.most.get(this.memory.name) : this.memory.peak.bytes;
  }
  showsLimit() {
    const {most} = this.limit();
    return most !== undefined && most <= 4 * this.highest();
  }
  range() {
    const drawn = this.shared.hidden.size > 0 ? this.most : this.highest();
    const most = Math.max(drawn, this.showsLimit() && this.shared.hidden.size === 0 ? this.limit().most : 0);
    return [0, most > 0 ? most * 1.06 : 1];
  }

  refresh() {
    this.sum();
    this.plot.repaint();
  }

  // One bar a pixel column at most: the fullest moment of the column, and what holds at its end.
  columns(u) {
    const {times} = this.memory,
      {left, width} = u.bbox,
      right = left + width;
    const result = [];
    let i = Math.max(0, lastAtMost(times, u.scales.x.min));
    while (i < times.length) {
      const x = Math.max(left, u.valToPos(times[i], 'x', true)),
        column = Math.floor(x);
      if (x > right) break;
      let most = i,
        last = i;
      while (last + 1 < times.length && Math.floor(u.valToPos(times[last + 1], 'x', true)) <= column) {
        ++last;
        if (this.total[last] > this.total[most]) most = last;
      }
      if (most !== last) result.push([x, most], [column + 1, last]);
      else result.push([x, last]);
      i = last + 1;
    }
    result.push([Math.min(right, u.valToPos(this.run.makespan, 'x', true)), -1]);
    return result;
  }

  paint(u, c) {
    const columns = this.columns(u),
      scale = devicePixelRatio || 1,
      y = (value) => u.valToPos(value, 'y', true);
    const floor = new Float64Array(columns.length);
    for (const {name, values} of this.classes) {
      if (this.shared.hidden.has(name)) continue;
      c.beginPath();
      for (let k = 0; k + 1 < columns.length; ++k) {
        const top = y(floor[k] + values[columns[k][1]]);
        c.lineTo(columns[k][0], top);
        c.lineTo(columns[k + 1][0], top);
      }
      for (let k = columns.length - 2; k >= 0; --k) {
        const bottom = y(floor[k]);
        c.lineTo(columns[k + 1][0], bottom);
        c.lineTo(columns[k][0], bottom);
        floor[k] += values[columns[k][1]];
      }
      c.closePath();
      c.fillStyle = fillOf(kClasses[name] ?? ['#888888', 'cross'], scale);
      c.fill();
    }
    c.beginPath();
    for (let k = 0; k + 1 < columns.length; ++k) {
      c.lineTo(columns[k][0], y(floor[k]));
      c.lineTo(columns[k + 1][0], y(floor[k]));
    }
    c.strokeStyle = ink().line;
    c.lineWidth = scale;
    c.stroke();
    this.paintLimit(u, c, scale);
  }

  paintLimit(u, c, scale) {
    if (!this.showsLimit()) return;
    const {most, words: text} = this.limit(),
      {left, width} = u.bbox,
      y = u.valToPos(most, 'y', true);
    c.strokeStyle = ink().limit;
    c.setLineDash([6 * scale, 4 * scale]);
    c.lineWidth = 1.5 * scale;
    c.beginPath();
    c.moveTo(left, y);
    c.lineTo(left + width, y);
    c.stroke();
    c.setLineDash([]);
    c.font = `${12 * scale}px system-ui, sans-serif`;
    c.textAlign = 'right';
    const wide = c.measureText(text).width;
    c.fillStyle = ink().paper;
    c.globalAlpha = 0.85;
    c.fillRect(left + width - wide - 10 * scale, y + 3 * scale, wide + 8 * scale, 16 * scale);
    c.globalAlpha = 1;
    c.fillStyle = ink().limit;
    c.fillText(text, left + width - 6 * scale, y + 15 * scale);
  }

  // The fullest moment of the pixel under the cursor, or else what holds there.
  momentAt(x, u) {
    const {times} = this.memory;
    const pixel = ((u.scales.x.max - u.scales.x.min) / u.bbox.width) * (devicePixelRatio || 1);
    let at = lastAtMost(times, x);
    let most = at;
    for (let i = at + 1; i < times.length && times[i] <= x + pixel; ++i)
      if (this.total[i] > (this.total[most] ?? -1)) most = i;
    for (let i = at; i >= 0 && times[i] >= x - pixel; --i) if (this.total[i] > this.total[most]) most = i;
    return most;
  }

  read(x, u) {
    const {times} = this.memory;
    const i = this.exact !== undefined && times[this.exact] === x ? this.exact : this.momentAt(x, u);
    if (i < 0 || x > this.run.makespan) return null;
    const inside = times[i] > x || this.total[i] > this.total[Math.max(0, lastAtMost(times, x))];
    const at = inside ? times[i] : x;
    const lines = [`${time(Math.round(at))}: ${bytes(this.total[i])} in ${this.memory.name}`];
    for (const {name, values} of [...this.classes].reverse())
      if (values[i] > 0 && !this.shared.hidden.has(name)) lines.push(`${words(name)} ${bytes(values[i])}`);
    const {stays, names} = this.shared;
    const {found, count} = aliveAt(stays, this.memory.id, times[i], kLargest);
    if (count > 0) lines.push(`largest of ${count.toLocaleString('en')}${stays.thinned ? ' listed' : ''} alive:`);
    for (const s of found)
      lines.push(
        `\u2002${bytes(stays.bytes[s])} ${names[stays.name[s]]}${this.run.microbatches > 1 && stays.microbatch[s] >= 0 ? `, microbatch ${stays.microbatch[s]}` : ''}`,
      );
    return {lines};
  }

  stop(at, dx, [min, max]) {
    const {times} = this.memory;
    let i = at === undefined ? lastAtMost(times, min) + (dx > 0 ? 0 : 1) : this.exact;
    i = Math.min(times.length - 1, Math.max(0, i + (Number.isFinite(dx) ? dx : dx > 0 ? times.length : -times.length)));
    this.exact = i;
    return {x: times[i], y: this.total[i]};
  }

  table() {
    const {times} = this.memory;
    const step = Math.ceil(times.length / kTableRows);
    const rows = [];
    for (let i = 0; i < times.length; i += step) {
      let most = i;
      for (let k = i; k < Math.min(times.length, i + step); ++k) if (this.total[k] > this.total[most]) most = k;
      rows.push([time(times[most]), ...this.classes.map(({values}) => bytes(values[most])), bytes(this.total[most])]);
    }
    const note = step > 1 ? `the fullest of every ${step} changes` : 'every change';
    return dataTable(['after', ...this.classes.map(({name}) => words(name)), 'in all'], rows, note);
  }
}

// Buttons that show and hide the classes of all charts of a run.
export function classLegend(charts, hidden) {
  const names = Object.keys(kClasses).filter((name) =>
    charts.some((chart) => chart.classes.some((it) => it.name === name)),
  );
  return el(
    'div',
    {class: 'legend', role: 'group', 'aria-label': 'classes shown'},
    names.map((name) =>
      toggle(
        el('span', {}, swatch(kClasses[name]), words(name)),
        true,
        (shown) => {
          if (shown) hidden.delete(name);
          else hidden.add(name);
          for (const chart of charts) chart.refresh();
        },
        {'data-class': name},
      ),
    ),
  );
}
