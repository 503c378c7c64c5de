// What lies where in a memory with addresses: a rectangle for each block from its allocation to its end. What an allocator
// holds and nothing lies in stays empty, so that holes are seen; a request that ended the run stands at its end.
import {decodeAddresses} from './data.js';
import {el, disclosure} from './dom.js';
import {bytes, counted, moment, time, words} from './format.js';
import {kByteIncrements, Plot} from './plot.js';
import {dataTable} from './table.js';
import {fillOf, ink, kClasses} from './theme.js';

const kTableRows = 200;
const kNearEnd = 12; // pixels from the end of the run in which the request that failed is read

export class AddressChart {
  // shared: {group, hidden: Set of classes, names, classes, gutter, right}
  constructor(memory, run, shared, height) {
    this.memory = memory;
    this.run = run;
    this.shared = shared;
    this.map = decodeAddresses(memory.addresses, run.makespan);
    const inUse = new Set(this.map.blocks.class);
    this.classes = shared.classes.filter((name, i) => inUse.has(i)).map((name) => ({name}));
    this.top = this.highest();
    this.spans = this.spansOf();
    this.element = el('figure', {class: 'chart addresses'}, el('figcaption', {}, this.caption()));
    this.plot = new Plot(this.element, {
      name: `addresses of ${memory.name} over time, of ${run.label}. Arrow keys move from block to block, up and down to the next at that moment.`,
      height,
      group: shared.group,
      axes: {
        x: {format: moment},
        y: {
          range: () => [0, this.top],
          format: (value) => bytes(value),
          size: shared.gutter,
          incrs: kByteIncrements,
          space: () => 26,
        },
      },
      right: shared.right,
      paint: (u, c) => this.paint(u, c),
      read: (x, y, u) => this.read(x, y, u),
      stop: (at, dx, dy, range) => this.stop(at, dx, dy, range),
    });
    this.element.append(disclosure('as a table', () => this.table()));
  }

  caption() {
    const {segments, blocks, left_out: leftOut, largest_left_out: largest, oom} = this.map,
      rangesLeftOut = this.map.ranges_left_out;
    let text = `addresses of ${this.memory.name}: ${counted(blocks.begin.length, 'block')}`;
    if (segments.length > 1) text += ` in ${counted(segments.length, 'segment')}, in the order in which they were made`;
    if (leftOut > 0) text += `; ${counted(leftOut, 'short or small one')} left out, of at most ${bytes(largest)}`;
    if (rangesLeftOut > 0) text += `; ${counted(rangesLeftOut, 'range')} that the allocator held left out`;
    if (oom) text += `; ${oom.step} asks for ${bytes(oom.asked)}, the largest free block has ${bytes(oom.largest)}`;
    return text;
  }

  // All that is held is in the picture unless that would flatten what lies there.
  highest() {
    const {blocks, ranges, oom} = this.map;
    const end = ({address, size}) => address.reduce((most, at, i) => Math.max(most, at + size[i]), 0);
    const used = end(blocks),
      held = end(ranges);
    const top = held <= 4 * used ? Math.max(held, used) : used;
    return Math.max(1, oom && oom.asked < 2 * top ? Math.max(top, oom.asked) : top) * 1.02;
  }

  refresh() {
    this.plot.repaint();
  }

  paint(u, c) {
    const scale = devicePixelRatio || 1;
    const px = (at) => u.valToPos(at, 'x', true),
      py = (address) => u.valToPos(address, 'y', true);
    this.paintRanges(u, c, px, py);
    this.paintBlocks(u, c, px, py, scale);
    this.paintSegments(u, c, px, py, scale);
    if (this.map.oom) this.paintRefusal(u, c, px, py, scale);
  }

  paintRanges(u, c, px, py) {
    const {address, size, begin, end} = this.map.ranges;
    c.fillStyle = ink().grid;
    for (let i = 0; i < begin.length; ++i) {
      if (begin[i] > u.scales.x.max || end[i] < u.scales.x.min) continue;
      const top = py(address[i] + size[i]),
        left = px(begin[i]);
      c.fillRect(left, top, px(end[i]) - left, py(address[i]) - top);
    }
  }

  paintBlocks(u, c, px, py, scale) {
    const {address, size, begin, end} = this.map.blocks;
    const from = u.bbox.left - 2 * scale,
      to = u.bbox.left + u.bbox.width + 2 * scale;
    c.strokeStyle = ink().edge;
    c.lineWidth = scale;
    for (let i = 0; i < begin.length; ++i) {
      const name = this.shared.classes[this.map.blocks.class[i]];
      if (begin[i] > u.scales.x.max || end[i] < u.scales.x.min) continue;
      const left = Math.max(from, px(begin[i])),
        top = py(address[i] + size[i]);
      const width = Math.max(0.75 * scale, Math.min(to, px(end[i])) - left),
        height = Math.max(0.75 * scale, py(address[i]) - top);
      // What is hidden is cut out, and no hole.
      const isHidden = this.shared.hidden.has(name);
      c.fillStyle = isHidden ? ink().paper : fillOf(kClasses[name] ?? ['#888888', 'cross'], scale);
      c.fillRect(left, top, width, height);
      if (width > 3 * scale && height > 4 * scale)
        c.strokeRect(left + 0.5 * scale, top + 0.5 * scale, width - scale, height - scale);
    }
  }

  // When anything of a segment was held.
  spansOf() {
    const {segments, ranges} = this.map,
      spans = segments.map(() => [Infinity, -Infinity]);
    ranges.begin.forEach((begin, i) => {
      const span = spans[this.segmentAt(ranges.address[i])];
      span[0] = Math.min(span[0], begin);
      span[1] = Math.max(span[1], ranges.end[i]);
    });
    return spans;
  }

  // A line where a segment begins, for as long as there is one; none where it would hide the segment.
  paintSegments(u, c, px, py, scale) {
    const {segments} = this.map;
    c.strokeStyle = ink().line;
    c.lineWidth = scale;
    c.setLineDash([2 * scale, 3 * scale]);
    segments.forEach((address, s) => {
      const y = Math.round(py(address)) + 0.5,
        [begin, end] = this.spans[s];
      if (y - py(segments[s + 1] ?? this.top) < 6 * scale || begin > end) return;
      c.beginPath();
      c.moveTo(px(Math.max(begin, u.scales.x.min)), y);
      c.lineTo(px(Math.min(end, u.scales.x.max)), y);
      c.stroke();
    });
    c.setLineDash([]);
  }

  // A line at the end, beside it how high the request is and how high the largest free block, on the axis of addresses.
  paintRefusal(u, c, px, py, scale) {
    const {asked, largest} = this.map.oom,
      x = px(this.run.makespan),
      bottom = py(0);
    const width = 9 * scale,
      place = 2 * width + 9 * scale;
    const left = x + place <= u.bbox.left + u.bbox.width ? x : x - place;
    const ground = py(Math.max(asked, largest)) - 4 * scale;
    c.fillStyle = ink().paper;
    c.fillRect(left, ground, place, bottom - ground);
    c.fillStyle = ink().limit;
    c.fillRect(left + 3 * scale, py(asked), width, bottom - py(asked));
    c.strokeStyle = ink().line;
    c.lineWidth = scale;
    c.strokeRect(left + width + 6.5 * scale, py(largest), width - scale, bottom - py(largest) - 0.5 * scale);
    c.strokeStyle = ink().limit;
    c.lineWidth = 2 * scale;
    c.beginPath();
    const line = Math.min(x, u.bbox.left + u.bbox.width - scale);
    c.moveTo(line, u.bbox.top);
    c.lineTo(line, u.bbox.top + u.bbox.height);
    c.stroke();
    this.paintRefusalText(u, c, x, place, scale);
  }

  // After the end where there is room, or else before it.
  paintRefusalText(u, c, x, place, scale) {
    const {asked, largest} = this.map.oom,
      lines = [
        [`asked for: ${bytes(asked)}`, ink().limit],
        [`largest free block: ${bytes(largest)}`, ink().text],
      ];
    c.font = `${12 * scale}px system-ui, sans-serif`;
    c.textAlign = 'left';
    const wide = Math.max(...lines.map(([text]) => c.measureText(text).width)) + 12 * scale,
      isAfter = x + place + wide <= u.bbox.left + u.bbox.width;
    const left = isAfter ? x + place : Math.max(u.bbox.left, x - place - wide - 4 * scale),
      top = u.bbox.top + 6 * scale;
    c.fillStyle = ink().paper;
    c.globalAlpha = 0.9;
    if (!isAfter) c.fillRect(left, top, wide, 36 * scale);
    c.globalAlpha = 1;
    lines.forEach(([text, colour], i) => {
      c.fillStyle = colour;
      c.fillText(text, left + 6 * scale, top + (12 + 15 * i) * scale);
    });
  }

  // Also of a class that is hidden: it is no hole.
  blockAt(x, y) {
    const {address, size, begin, end} = this.map.blocks;
    for (let i = 0; i < begin.length && begin[i] <= x; ++i)
      if (x < end[i] && address[i] <= y && y < address[i] + size[i]) return i;
    return -1;
  }

  read(x, y, u) {
    const {makespan} = this.run,
      {oom} = this.map;
    const pixel = ((u.scales.x.max - u.scales.x.min) / u.bbox.width) * (devicePixelRatio || 1);
    const isStop = x !== makespan && this.plot.at?.x === x; // reached with the keyboard
    if (oom && !isStop && Math.abs(x - makespan) <= kNearEnd * pixel)
      return {
        lines: [
          `${time(makespan)}: out of memory`,
          `${oom.step} asks for ${bytes(oom.asked)} of ${this.memory.name}`,
          `the largest free block has ${bytes(oom.largest)}`,
        ],
      };
    if (x < 0 || x > makespan) return null;
    const i = this.blockAt(x, y);
    return {lines: i >= 0 ? this.linesOf(i) : this.linesOfHole(x, y)};
  }

  linesOf(i) {
    const {blocks} = this.map,
      {names, classes} = this.shared;
    const size = blocks.size[i],
      requested = blocks.requested[i],
      begin = this.segmentAt(blocks.address[i]);
    const lines = [names[blocks.name[i]], words(classes[blocks.class[i]])];
    if (this.run.microbatches > 1 && blocks.microbatch[i] >= 0) lines[1] += ` of microbatch ${blocks.microbatch[i]}`;
    lines.push(size === requested ? bytes(size) : `${bytes(size)}, of which ${bytes(requested)} were asked for`);
    lines.push(`at ${bytes(blocks.address[i] - this.map.segments[begin])}${this.ofSegment(begin)}`);
    const until = blocks.length[i] === null ? 'the end' : time(blocks.end[i]);
    return [...lines, `from ${time(blocks.begin[i])} to ${until}`];
  }

  // Up to the next block on either side, or the end of what is held there.
  linesOfHole(x, y) {
    const {blocks, ranges, left_out: leftOut} = this.map;
    const at = time(Math.round(x));
    const r = ranges.begin.findIndex(
      (begin, i) => begin <= x && x < ranges.end[i] && ranges.address[i] <= y && y < ranges.address[i] + ranges.size[i],
    );
    if (r < 0) return [`${at}: nothing is held here`];
    let low = ranges.address[r],
      high = low + ranges.size[r];
    for (let i = 0; i < blocks.begin.length && blocks.begin[i] <= x; ++i) {
      if (x >= blocks.end[i]) continue;
      const end = blocks.address[i] + blocks.size[i];
      if (end <= y) low = Math.max(low, end);
      else if (blocks.address[i] > y) high = Math.min(high, blocks.address[i]);
    }
    const begin = this.segmentAt(low);
    const lines = [
      `${at}: ${bytes(high - low)} free`,
      `at ${bytes(low - this.map.segments[begin])}${this.ofSegment(begin)}`,
    ];
    if (leftOut > 0) lines.push('or short and small blocks that are left out');
    return lines;
  }

  segmentAt(address) {
    const {segments} = this.map;
    let s = segments.length - 1;
    while (s > 0 && segments[s] > address) --s;
    return s;
  }
  ofSegment(s) {
    return this.map.segments.length > 1 ? ` of segment ${s}` : '';
  }

  // Left and right by begin, then the request that failed; up and down by address among those alive.
  stop(at, dx, dy, [min]) {
    const {begin} = this.map.blocks,
      last = begin.length - (this.map.oom ? 0 : 1);
    let i = at === undefined ? begin.findIndex((it) => it >= min) : (this.exact ?? 0);
    if (i < 0) i = last;
    if (at !== undefined && dy !== 0) i = this.beside(i, dy);
    else if (!Number.isFinite(dx)) i = dx > 0 ? last : 0;
    else if (at !== undefined) i = Math.min(last, Math.max(0, i + dx));
    this.exact = i;
    return this.stopOf(i, at, dy);
  }

  stopOf(i, at, dy) {
    const {address, size, begin} = this.map.blocks;
    if (i === begin.length) return {x: this.run.makespan, y: this.map.oom.asked / 2};
    return {x: dy !== 0 && at ? Math.max(begin[i], at.x) : begin[i], y: address[i] + size[i] / 2};
  }

  // The next block above or below that is there when block i begins.
  beside(i, dy) {
    const {address, begin, end} = this.map.blocks;
    if (i === begin.length) return i;
    let found = i;
    const x = this.plot.at.x;
    for (let k = 0; k < begin.length && begin[k] <= x; ++k) {
      if (x >= end[k]) continue;
      const isBeyond = dy < 0 ? address[k] > address[i] : address[k] < address[i];
      const isNearer = found === i || (dy < 0 ? address[k] < address[found] : address[k] > address[found]);
      if (isBeyond && isNearer) found = k;
    }
    return found;
  }

  table() {
    const {blocks} = this.map,
      {names, classes} = this.shared;
    const rows = [];
    for (let i = 0; i < blocks.begin.length && rows.length < kTableRows; ++i) {
      const s = this.segmentAt(blocks.address[i]);
      rows.push([
        names[blocks.name[i]],
        words(classes[blocks.class[i]]),
        bytes(blocks.size[i]),
        String(s),
        bytes(blocks.address[i] - this.map.segments[s]),
        time(blocks.begin[i]),
        blocks.length[i] === null ? 'the end' : time(blocks.end[i]),
      ]);
    }
    return dataTable(
      ['what', 'class', 'size', 'segment', 'at', 'from', 'to'],
      rows,
      rows.length < blocks.begin.length ? `the first ${kTableRows}` : undefined,
    );
  }
}
