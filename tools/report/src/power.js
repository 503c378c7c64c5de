// What is drawn, and what has been used, over time.
import {sums} from './data.js';
import {el, disclosure} from './dom.js';
import {joules, moment, time, watts} from './format.js';
import {kRightGutter, lastAtMost, Plot} from './plot.js';
import {dataTable} from './table.js';
import {ink} from './theme.js';

const kTableRows = 200;

export class PowerChart {
  constructor(power, run, shared) {
    this.run = run;
    this.times = sums(power.time);
    this.drawn = Float64Array.from(power.drawn);
    this.used = Float64Array.from(power.used);
    const most = this.drawn.reduce((a, b) => Math.max(a, b), 0),
      all = this.used[this.used.length - 1];
    this.element = el(
      'figure',
      {class: 'chart'},
      el('figcaption', {}, `power (line) and energy used so far (dashed): ${joules(all)} in all`),
    );
    this.plot = new Plot(this.element, {
      name: `power and energy over time, of ${run.label}. Arrow keys move from change to change.`,
      height: 150,
      group: shared.group,
      axes: {
        x: {format: moment},
        y: {
          range: () => [0, most > 0 ? most * 1.1 : 1],
          format: (value) => watts(value),
          size: shared.gutter,
          space: () => 26,
        },
        right: {
          range: () => [0, all > 0 ? all * 1.1 : 1],
          format: (value) => joules(value),
          size: kRightGutter,
          space: () => 26,
        },
      },
      paint: (u, c) => this.paint(u, c),
      read: (x) => this.read(x),
      stop: (at, dx, dy, range) => this.stop(at, dx, range),
    });
    this.element.append(disclosure('as a table', () => this.table()));
  }

  paint(u, c) {
    const scale = devicePixelRatio || 1,
      px = (t) => u.valToPos(t, 'x', true),
      right = u.bbox.left + u.bbox.width;
    const begin = Math.max(0, lastAtMost(this.times, u.scales.x.min));
    c.lineWidth = 1.5 * scale;
    c.strokeStyle = ink().line;
    c.beginPath();
    // One column a pixel: from the least to the most that is drawn in it.
    for (let i = begin; i < this.times.length && px(this.times[i]) <= right;) {
      const x = px(this.times[i]);
      let last = i,
        low = this.drawn[i],
        high = low;
      while (last + 1 < this.times.length && px(this.times[last + 1]) < Math.floor(x) + 1) {
        ++last;
        low = Math.min(low, this.drawn[last]);
        high = Math.max(high, this.drawn[last]);
      }
      const to = last + 1 < this.times.length ? px(this.times[last + 1]) : x;
      if (low !== high) {
        c.lineTo(x, u.valToPos(low, 'y', true));
        c.lineTo(x, u.valToPos(high, 'y', true));
      }
      c.lineTo(x, u.valToPos(this.drawn[last], 'y', true));
      c.lineTo(to, u.valToPos(this.drawn[last], 'y', true));
      i = last + 1;
    }
    c.stroke();
    c.setLineDash([5 * scale, 4 * scale]);
    c.strokeStyle = ink().dim;
    c.beginPath();
    for (let i = begin, drawn = -2; i < this.times.length; ++i) {
      const x = px(this.times[i]);
      if (x - drawn < 1 && i + 1 < this.times.length) continue;
      drawn = x;
      c.lineTo(x, u.valToPos(this.used[i], 'right', true));
      if (x > right) break;
    }
    c.stroke();
    c.setLineDash([]);
  }

  usedAt(x) {
    const i = lastAtMost(this.times, x);
    if (i < 0 || i + 1 >= this.times.length) return this.used[Math.max(0, i)];
    return (
      this.used[i] + ((this.used[i + 1] - this.used[i]) * (x - this.times[i])) / (this.times[i + 1] - this.times[i])
    );
  }

  read(x) {
    const i = lastAtMost(this.times, x);
    if (i < 0 || x > this.run.makespan) return null;
    return {lines: [`${time(Math.round(x))}: ${watts(this.drawn[i])}`, `${joules(this.usedAt(x))} used so far`]};
  }

  stop(at, dx, [min]) {
    let i =
      at === undefined
        ? lastAtMost(this.times, min)
        : lastAtMost(this.times, at.x) + (Number.isFinite(dx) ? dx : dx > 0 ? this.times.length : -this.times.length);
    i = Math.min(this.times.length - 1, Math.max(0, i));
    return {x: this.times[i], y: this.drawn[i]};
  }

  table() {
    const step = Math.ceil(this.times.length / kTableRows),
      rows = [];
    for (let i = 0; i < this.times.length; i += step)
      rows.push([time(this.times[i]), watts(this.drawn[i]), joules(this.used[i])]);
    return dataTable(['from', 'drawn', 'used before'], rows, step > 1 ? `every ${step}th change` : 'every change');
  }
}
