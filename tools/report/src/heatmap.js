// A quantity over two paths of a sweep: a table whose cells are shaded, so that it is read by eye, by keys and without colour alike.
import {el} from './dom.js';
import {bare, captioned, quantity} from './format.js';

const kShades = 9;
const kManyColumns = 12;
// Characters of all columns that fit a sheet of paper beside the names of the rows.
const kSheet = 100;

// section: {x: {label, values}, y: {label, values}, unit, low_is_good, unranked?, log?, range?: [least, most], cells: [[number | null]], texts?: [[text]],
//           remarks?: [[text]]}
export function heatmapSection(section) {
  const known = section.cells.flat().filter((value) => value !== null);
  const scale = section.log && known.every((value) => value > 0) ? Math.log : (value) => value;
  const [least, most] = section.range ?? [Math.min(...known), Math.max(...known)],
    best = section.low_is_good ? Math.min(...known) : Math.max(...known);
  const shades = known.length
    ? `; ${quantity(least, section.unit)} (lightest) to ${quantity(most, section.unit)} (darkest)`
    : '';
  const shade = (value) =>
    most === least ? 0 : Math.round(((scale(value) - scale(least)) / (scale(most) - scale(least))) * (kShades - 1));
  const cellOf = (value, text, remark) => {
    if (value === null) return el('td', {class: 'none', tabindex: '-1'}, text || 'none');
    const isBest = value === best && !section.unranked;
    return el(
      'td',
      {class: `shade-${shade(value)}${isBest ? ' best' : ''}`, tabindex: '-1', title: remark || undefined},
      isBest ? '\u2605 ' : '',
      text || bare(value, section.unit),
      remark ? el('span', {class: 'ring', role: 'img', 'aria-label': remark}, ' \u25cb') : null,
    );
  };
  const all = section.x.values.length;
  const written = section.cells.flatMap((row, r) =>
    row.map((value, c) => section.texts?.[r]?.[c] || (value === null ? 'none' : bare(value, section.unit))),
  );
  const widest = Math.max(...section.x.values.flatMap((value) => value.split(' ')).concat(written).map((text) => text.length));
  const onSheet = Math.max(1, Math.min(kManyColumns, Math.floor(kSheet / (widest + 2))));
  const tableOf = (from, to) =>
    el(
      'table',
      {class: all > onSheet ? 'heat small' : 'heat', onkeydown: move},
      el(
        'caption',
        {},
        // Stays in sight, and within it, where the table is wider than that.
        el(
          'span',
          {},
          `${captioned(section.what, section.unit)}: ${section.x.label} to the right, ${section.y.label} down${shades}`,
        ),
      ),
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          el('th', {scope: 'col'}, `${section.y.label} \\ ${section.x.label}`),
          section.x.values.slice(from, to).map((value) => el('th', {scope: 'col'}, value)),
        ),
      ),
      el(
        'tbody',
        {},
        section.cells.map((row, r) =>
          el(
            'tr',
            {},
            el('th', {scope: 'row'}, section.y.values[r]),
            row
              .slice(from, to)
              .map((value, c) => cellOf(value, section.texts?.[r]?.[from + c], section.remarks?.[r]?.[from + c])),
          ),
        ),
      ),
    );
  const table = tableOf(0, all);
  table.querySelector('td')?.setAttribute('tabindex', '0');
  if (all <= onSheet) return el('div', {class: 'scroll'}, table);
  const parts = Math.ceil(all / onSheet);
  const bounds = Array.from({length: parts + 1}, (_, part) => Math.round((part * all) / parts));
  return el(
    'div',
    {},
    el('div', {class: 'scroll wide'}, table),
    // Paper does not scroll.
    el('div', {class: 'on-paper', 'aria-hidden': 'true'}, bounds.slice(1).map((to, part) => tableOf(bounds[part], to))),
  );
}

// One cell is in the order of tabs, the arrows move on from it.
function move(event) {
  const moves = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  const cell = event.target.closest('td');
  if (!cell || !(event.key in moves)) return;
  const [down, right] = moves[event.key];
  const row = [...cell.closest('tbody').rows][cell.parentNode.rowIndex - 1 + down];
  const next = row?.cells[cell.cellIndex + right];
  if (next?.tagName !== 'TD') return;
  event.preventDefault();
  cell.setAttribute('tabindex', '-1');
  next.setAttribute('tabindex', '0');
  next.focus();
}
