// The ranks of a mesh on their machines, as SVG: it prints, and follows the theme by its style alone.
import {el} from './dom.js';

const kGpu = {width: 76, height: 46, gap: 8};
const kColumns = 4;
const kMachine = {width: kColumns * (kGpu.width + kGpu.gap) + kGpu.gap + 8, gap: 20, title: 40, bus: 26};
const kAcross = 3; // machines side by side
const kColours = 8;
const kLetters = 12; // of a label in one line of a GPU
const kTitle = 56; // likewise of a machine

const svg = (tag, properties = {}, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties)) if (value !== undefined) node.setAttribute(name, value);
  for (const child of children.flat()) if (child !== null) node.append(child);
  return node;
};
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);
const words = (x, y, text, more = {}) => svg('text', {x, y, ...more}, text);

// section: {coloured, axes: [{name, size, inside, across, carries}], of which the two in the middle are links,
//           machines: [{title, count, gpus: [{name, label, words, colour, use?}]}]}
export function meshSection({coloured, axes, machines}) {
  const inside = waysOf(axes, 'inside');
  const across = waysOf(axes, 'across');
  return el(
    'div',
    {class: 'mesh'},
    coloured ? el('p', {class: 'dim'}, `Colours are coordinates on the axis ${coloured}.`) : null,
    el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'mesh'}, picture(machines, inside, across)),
    axesTable(axes),
  );
}

// "nvswitch, 450 GB/s: tensor, data", for each way.
function waysOf(axes, side) {
  const ways = new Map();
  for (const axis of axes) if (axis[side]) ways.set(axis[side], [...(ways.get(axis[side]) ?? []), axis.name]);
  return [...ways].map(([way, names]) => `${way}: ${names.join(', ')}`).join('; ');
}

function picture(machines, inside, across) {
  const rows = Math.max(...machines.map(({gpus}) => Math.ceil(gpus.length / kColumns)));
  const height = kMachine.title + rows * (kGpu.height + kGpu.gap) + (inside ? kMachine.bus : 0) + 6;
  const columns = Math.min(kAcross, machines.length);
  const lines = Math.ceil(machines.length / columns);
  const fabric = across ? kMachine.bus : 0;
  const width = columns * (kMachine.width + kMachine.gap) - kMachine.gap + 2;
  const all = lines * (height + fabric + kMachine.gap) - (across ? 0 : kMachine.gap) + 2;
  const parts = machines.map((machine, i) => {
    const x = 1 + (i % columns) * (kMachine.width + kMachine.gap);
    const y = 1 + Math.floor(i / columns) * (height + fabric + kMachine.gap);
    return machineBox(machine, x, y, height, inside, fabric);
  });
  const buses = Array.from({length: across ? lines : 0}, (_, line) => {
    const y = line * (height + fabric + kMachine.gap) + height + fabric / 2 + 1;
    return svg(
      'g',
      {class: 'bus'},
      svg('line', {x1: 1, y1: y, x2: width - 1, y2: y}),
      words(6, y + 14, `across machines: ${across}`),
    );
  });
  return svg(
    'svg',
    {
      viewBox: `0 0 ${width} ${all}`,
      width,
      height: all,
      role: 'group',
      'aria-label': `${machines.length} kinds of machines with their GPUs`,
    },
    parts,
    buses,
  );
}

function machineBox({title, count, gpus}, x, y, height, inside, fabric) {
  const busY = y + height - 20;
  const places = gpus.map((gpu, i) => ({
    gpu,
    x: x + kGpu.gap + 4 + (i % kColumns) * (kGpu.width + kGpu.gap),
    y: y + kMachine.title + Math.floor(i / kColumns) * (kGpu.height + kGpu.gap),
  }));
  const middle = x + kMachine.width / 2;
  return svg(
    'g',
    {},
    svg('rect', {class: 'machine', x, y, width: kMachine.width, height: height - 2, rx: 4}),
    words(x + 10, y + 17, count > 1 ? `${count} machines` : '1 machine', {class: 'head'}),
    words(x + 10, y + 32, shortened(title, kTitle), {class: 'small'}),
    places.map(gpuBox),
    inside
      ? svg(
          'g',
          {class: 'bus'},
          svg('line', {x1: x + 10, y1: busY, x2: x + kMachine.width - 10, y2: busY}),
          words(x + 12, busY + 13, shortened(inside, kTitle)),
        )
      : null,
    fabric ? svg('line', {class: 'stub', x1: middle, y1: y + height - 2, x2: middle, y2: y + height + fabric / 2}) : null,
  );
}

function gpuBox({gpu, x, y}) {
  const bar = kGpu.width - 12;
  return svg(
    'g',
    {class: `gpu colour-${gpu.colour % kColours}`, tabindex: '0', role: 'img', 'aria-label': gpu.words},
    svg('title', {}, gpu.words),
    svg('rect', {x, y, width: kGpu.width, height: kGpu.height, rx: 3}),
    words(x + 6, y + 15, shortened(gpu.name, kLetters), {class: 'small'}),
    words(x + 6, y + 30, shortened(gpu.label, kLetters), {class: 'label'}),
    svg('rect', {class: 'empty', x: x + 6, y: y + 36, width: bar, height: 5}),
    gpu.use === undefined ? null : svg('rect', {class: 'used', x: x + 6, y: y + 36, width: bar * Math.min(1, gpu.use), height: 5}),
  );
}

function axesTable(axes) {
  const heads = ['axis', 'ranks', 'within machines', 'across machines', 'carries'];
  return el(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'axes'},
    el(
      'table',
      {class: 'compared'},
      el('thead', {}, el('tr', {}, heads.map((head) => el('th', {scope: 'col'}, head)))),
      el(
        'tbody',
        {},
        axes.map(({name, size, inside, across, carries}) =>
          el('tr', {}, el('th', {scope: 'row'}, name), el('td', {class: 'right'}, String(size)), el('td', {}, inside || '-'), el('td', {}, across || '-'), el('td', {}, carries)),
        ),
      ),
    ),
  );
}
