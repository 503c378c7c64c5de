// The page: a title, then one section after the other as the data say (sim/report/html/html_data.hpp has their form).
import {barsSection} from './bars.js';
import {el} from './dom.js';
import {FORM} from './form.js';
import {heatmapSection} from './heatmap.js';
import {meshSection} from './mesh.js';
import {runsSection} from './runs.js';
import {scatterSection} from './scatter.js';
import {comparisonTable} from './table.js';

const kSections = {
  text: ({paragraphs, preformatted}) =>
    el(
      'div',
      {},
      paragraphs.map((text) => (preformatted ? el('pre', {class: 'words'}, text) : el('p', {}, text))),
    ),
  table: comparisonTable,
  runs: runsSection,
  scatter: scatterSection,
  bars: barsSection,
  heatmap: heatmapSection,
  mesh: meshSection,
};

function sectionOf(section, i) {
  const id = `section-${i}`;
  const element = el(
    'section',
    {id, 'data-kind': section.kind, 'aria-labelledby': `${id}-heading`},
    el('h2', {id: `${id}-heading`}, section.heading),
  );
  if (section.note) element.append(el('p', {class: 'dim'}, section.note));
  return element;
}

// Maps of one quantity stand together, below one link.
function linksTo(sections) {
  const isMapLike = (one, other) => one.kind === 'heatmap' && other?.kind === 'heatmap' && one.what === other.what;
  return sections.flatMap((section, i) => {
    if (isMapLike(section, sections[i - 1])) return [];
    const name = isMapLike(section, sections[i + 1]) ? section.heading.split(':')[0] : section.heading;
    return [el('a', {href: `#section-${i}`}, name)];
  });
}

function main() {
  const data = JSON.parse(document.getElementById('data').textContent);
  const report = document.getElementById('report');
  if (data.form !== FORM) {
    report.replaceChildren(el('p', {}, `This page reads data of form ${FORM}; these are of form ${data.form}.`));
    return;
  }
  document.title = data.title;
  const links = linksTo(data.sections);
  report.replaceChildren(
    el(
      'header',
      {},
      el('h1', {}, data.title),
      data.subtitle ? el('p', {class: 'subtitle'}, data.subtitle) : null,
      links.length > 1 ? el('nav', {'aria-label': 'sections'}, links) : null,
    ),
  );
  // A chart takes the width of its place, so each section is in the page before it is filled.
  data.sections.forEach((section, i) => {
    const element = sectionOf(section, i);
    report.append(element);
    element.append(kSections[section.kind](section));
  });
  report.append(el('footer', {}, data.program));
  document.documentElement.dataset.ready = 'true';
}

main();
