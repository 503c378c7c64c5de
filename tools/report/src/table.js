// Tables: of comparisons, with bars and marks, and plain ones beside the charts.
import {el} from './dom.js';

const kMarks = {best: ['\u2605 ', 'best of its column'], bad: ['\u2715 ', 'did not end well']};

const kManyColumns = 8;

// section: {heading, note?, columns: [{header, right?}], rows: [[{text, mark?, bar?, hint?}]]}
export function comparisonTable({columns, rows}) {
  const head = el(
    'tr',
    {},
    columns.map(({header, right}) => el('th', {scope: 'col', class: right ? 'right' : undefined}, header)),
  );
  const body = rows.map((row) =>
    el(
      'tr',
      {},
      row.map((cell, i) => cellOf(cell, columns[i], i === 0)),
    ),
  );
  return el(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'table'},
    el('table', {class: columns.length > kManyColumns ? 'compared dense' : 'compared'}, el('thead', {}, head), el('tbody', {}, body)),
  );
}

// "remat/rotor (budget: 6 GiB)" is broken between its parameters, not within one.
const unbrokenParameters = (label) =>
  label.replace(/\(.*\)$/, (parameters) => parameters.replace(/(?<!,) /g, '\u00a0'));

function cellOf(cell, {right}, isHead) {
  const [sign, title] = kMarks[cell.mark] ?? ['', undefined];
  const parts = [];
  if (sign) parts.push(el('span', {class: 'mark', title, role: 'img', 'aria-label': title}, sign));
  if (cell.bar !== undefined) {
    const fill = el('span', {class: 'fill'});
    fill.style.width = `${Math.min(1, Math.max(0, cell.bar)) * 100}%`;
    parts.push(el('span', {class: 'bar', 'aria-hidden': 'true'}, fill));
  }
  const text = isHead ? unbrokenParameters(cell.text) : cell.text;
  parts.push(cell.bar === undefined ? text : el('span', {class: 'beside'}, text));
  if (cell.hint) parts.push(el('div', {class: 'hint'}, cell.hint));
  return el(
    isHead ? 'th' : 'td',
    {class: [right ? 'right' : '', cell.mark ?? ''].join(' ').trim() || undefined, scope: isHead ? 'row' : undefined},
    parts,
  );
}

export function dataTable(headers, rows, note) {
  return el(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'data as a table'},
    note ? el('p', {class: 'dim'}, note) : null,
    el(
      'table',
      {class: 'plain'},
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          headers.map((text) => el('th', {scope: 'col'}, text)),
        ),
      ),
      el(
        'tbody',
        {},
        rows.map((row) =>
          el(
            'tr',
            {},
            row.map((text, i) => el(i === 0 ? 'th' : 'td', i === 0 ? {scope: 'row'} : {}, text)),
          ),
        ),
      ),
    ),
  );
}
