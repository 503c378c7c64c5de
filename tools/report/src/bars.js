// What a change would move: bars to both sides of nothing, each with its words. Plain elements, so that print and keys need no more.
import {el} from './dom.js';

// section: {items: [{label, group, value, text, good?}]}
export function barsSection({items, baseline}) {
  const most = Math.max(...items.map(({value}) => Math.abs(value)), 0);
  const both = items.some(({value}) => value < 0);
  const groups = [...new Set(items.map(({group}) => group))];
  const rowOf = ({label, value, text}) => {
    const fill = el('span', {class: value < 0 ? 'fill less' : 'fill more'});
    const share = most > 0 ? Math.abs(value) / most : 0;
    fill.style.width = `${share * (both ? 50 : 100)}%`;
    if (both) fill.style.marginLeft = value < 0 ? `${50 - share * 50}%` : '50%';
    return el(
      'tr',
      {},
      el('th', {scope: 'row'}, label),
      el('td', {class: 'right'}, text),
      el('td', {class: 'wide', 'aria-hidden': 'true'}, el('span', {class: both ? 'track both' : 'track'}, fill)),
    );
  };
  return el(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'bars'},
    baseline ? el('p', {class: 'dim'}, baseline) : null,
    el(
      'table',
      {class: 'bars'},
      groups.map((group) =>
        el(
          'tbody',
          {},
          group ? el('tr', {}, el('th', {class: 'group', colspan: '3', scope: 'rowgroup'}, group)) : null,
          items.filter((item) => item.group === group).map(rowOf),
        ),
      ),
    ),
  );
}
