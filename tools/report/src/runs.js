// The runs of a scenario, one below the other: words, memories, timeline, power. Their time axes are one, so that runs can be
// compared by eye, or each its own.
import {AddressChart} from './addresses.js';
import {decodeMemory, decodeStays, decodeTrack} from './data.js';
import {disclosure, el, toggle} from './dom.js';
import {classLegend, MemoryChart} from './memory.js';
import {Group, kRightGutter, zoomButtons} from './plot.js';
import {PowerChart} from './power.js';
import {kindLegend, TimelineChart} from './timeline.js';

const kMemoriesInColumn = 2;
const kMemoriesAtOnce = 8;

export function runsSection(section) {
  const element = el('div', {class: 'runs'});
  const blocks = section.runs.map((run) => ({run, block: el('section', {class: 'run', 'aria-label': run.label})}));
  const common = {on: true, longest: 0, most: new Map(), changed: []};
  for (const run of section.runs) {
    common.longest = Math.max(common.longest, run.makespan);
    for (const {name, peak} of run.memories ?? [])
      common.most.set(name, Math.max(common.most.get(name) ?? 0, peak.bytes));
  }
  if (section.runs.length > 1) element.append(selector(blocks));
  if (section.runs.filter((run) => run.makespan > 0).length > 1)
    element.append(
      toggle(
        'one scale for all runs',
        true,
        (one) => {
          common.on = one;
          for (const change of common.changed) change();
        },
        {class: 'scale'},
      ),
    );
  for (const {run, block} of blocks) {
    element.append(block);
    fill(block, run, section, common);
  }
  return element;
}

function selector(blocks) {
  return el(
    'div',
    {class: 'legend chooser', role: 'group', 'aria-label': 'runs shown'},
    el('span', {class: 'dim'}, 'runs shown:'),
    blocks.map(({run, block}) =>
      toggle(run.label, true, (shown) => {
        block.hidden = !shown;
      }),
    ),
  );
}

function fill(block, run, section, common) {
  block.append(
    el('h3', {}, run.label, ' ', el('span', {class: `status ${run.status === 'ok' ? 'ok' : 'bad'}`}, run.status)),
  );
  for (const text of run.notes) block.append(el('p', {class: 'note'}, text));
  if (run.failure) block.append(el('pre', {class: 'words'}, run.failure));
  if (run.makespan > 0) {
    const group = new Group([0, common.longest]);
    block.append(zoomButtons(group));
    draw(block, run, section, group, common);
  }
  if (run.words) block.append(disclosure('in words', () => el('pre', {class: 'words'}, run.words)));
}

function draw(block, run, section, group, common) {
  const tracks = run.tracks.map(decodeTrack),
    memories = run.memories.map(decodeMemory);
  const stacked = memories.length <= kMemoriesInColumn;
  const longestName = Math.max(0, ...tracks.map(({label}) => label.length));
  const shared = {
    group,
    common,
    hidden: new Set(),
    stays: decodeStays(run.stays),
    names: section.names,
    kinds: section.kinds,
    causes: section.causes,
    classes: section.classes,
    gutter: Math.min(170, Math.max(78, 22 + 7 * longestName)),
    right: run.power && stacked ? kRightGutter : undefined,
  };
  if (tracks.length) block.append(kindLegend(tracks, shared), new TimelineChart(tracks, run, shared).element);
  const charts = memories.length
    ? drawMemories(block, memories, run, {...shared, ...(stacked ? {} : {gutter: 78, right: undefined})}, stacked)
    : [];
  if (run.power) block.append(new PowerChart(run.power, run, shared).element);
  common.changed.push(() => {
    group.full = [0, common.on ? common.longest : run.makespan];
    group.reset();
    for (const chart of charts) chart.refresh();
  });
}

function drawMemories(block, memories, run, shared, stacked) {
  const grid = el('div', {class: stacked ? undefined : 'grid'});
  const charts = [];
  const add = (memory) => {
    const added = [new MemoryChart(memory, run, shared, stacked ? 240 : 140)];
    if (memory.addresses) added.push(new AddressChart(memory, run, shared, stacked ? 300 : 200));
    charts.push(...added);
    grid.append(...added.map(({element}) => element));
  };
  memories.slice(0, kMemoriesAtOnce).forEach(add);
  block.append(classLegend(charts, shared.hidden), grid);
  const rest = memories.slice(kMemoriesAtOnce);
  if (rest.length) {
    const button = el(
      'button',
      {
        type: 'button',
        onclick: () => {
          rest.forEach(add);
          button.remove();
        },
      },
      `${rest.length} more ${rest.length === 1 ? 'memory' : 'memories'}`,
    );
    block.append(button);
  }
  return charts;
}
