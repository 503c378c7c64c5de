// Colours and patterns. Kinds differ in lightness or pattern, so that a page without colour, or a reader without it, tells them apart.
import {drawForPaper} from './paper.js';

const kInks = {
  light: {
    text: '#1c2430',
    dim: '#5b6675',
    grid: '#e3e7ec',
    row: '#f3f5f8',
    line: '#1c2430',
    limit: '#b3261e',
    pattern: 'rgba(255,255,255,0.55)',
    edge: 'rgba(255,255,255,0.85)',
    paper: '#ffffff',
    cursor: '#1c2430',
  },
  dark: {
    text: '#e6eaf0',
    dim: '#9aa6b5',
    grid: '#2b333e',
    row: '#1b222b',
    line: '#e6eaf0',
    limit: '#ff8a80',
    pattern: 'rgba(0,0,0,0.42)',
    edge: 'rgba(17,22,29,0.9)',
    paper: '#11161d',
    cursor: '#e6eaf0',
  },
};

// name: [colour, pattern, ink of a label on it]
export const kClasses = {
  parameter: ['#2d5c9a', 'solid'],
  optimizer_state: ['#aa5599', 'dots'],
  gradient: ['#d9a93a', 'rising'],
  activation: ['#5bb8d6', 'level'],
  saved: ['#6cbf85', 'solid'],
  workspace: ['#98a2ae', 'cross'],
  in_flight: ['#e0637a', 'falling'],
};
export const kKinds = {
  forward: ['#2d5c9a', 'solid', '#ffffff'],
  recomputation: ['#7fa6d0', 'rising', '#10202f'],
  backward: ['#6cbf85', 'solid', '#0b2413'],
  backward_input: ['#a5e3ee', 'solid', '#10202f'],
  backward_weight: ['#c3d96b', 'dots', '#18200a'],
  optimizer: ['#98a2ae', 'cross', '#14181d'],
  pair: ['#b48ac9', 'level', '#1d1023'],
  offload: ['#e39a3b', 'rising', '#241503'],
  prefetch: ['#aa5599', 'falling', '#ffffff'],
  message: ['#8794a5', 'level', '#10151b'],
};
export const kStalls = {
  transfer: ['#e0637a', 'falling'],
  dependency: ['#c9a227', 'dots'],
  memory: ['#7b4fb5', 'cross'],
};

const dark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const listeners = new Set();

export const ink = () => kInks[dark.matches && !printing ? 'dark' : 'light'];
export const onThemeChange = (listener) => listeners.add(listener);
const changed = () => {
  patterns.clear();
  for (const listener of listeners) listener({printing});
};
dark.addEventListener('change', changed);
const print = (isPaper) => {
  printing = isPaper;
  drawForPaper(isPaper);
  changed();
};
addEventListener('beforeprint', () => print(true));
addEventListener('afterprint', () => print(false));

const kStrokes = {
  rising: (c, n) => {
    for (let i = -n; i <= n; i += n / 2) {
      c.moveTo(i, n);
      c.lineTo(i + n, 0);
    }
  },
  falling: (c, n) => {
    for (let i = -n; i <= n; i += n / 2) {
      c.moveTo(i, 0);
      c.lineTo(i + n, n);
    }
  },
  level: (c, n) => {
    c.moveTo(0, n / 4);
    c.lineTo(n, n / 4);
    c.moveTo(0, (3 * n) / 4);
    c.lineTo(n, (3 * n) / 4);
  },
  cross: (c, n) => {
    c.moveTo(0, n);
    c.lineTo(n, 0);
    c.moveTo(0, 0);
    c.lineTo(n, n);
  },
};
const patterns = new Map();

// What fills a shape on a canvas of this scale.
export function fillOf([colour, pattern], scale = 1) {
  if (pattern === 'solid') return colour;
  const key = `${colour} ${pattern} ${scale}`;
  if (patterns.has(key)) return patterns.get(key);
  const size = Math.round(8 * scale);
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const c = tile.getContext('2d');
  c.fillStyle = colour;
  c.fillRect(0, 0, size, size);
  c.strokeStyle = c.fillStyle = ink().pattern;
  c.lineWidth = Math.max(1, scale * 1.2);
  c.beginPath();
  if (pattern === 'dots') {
    for (const [x, y] of [
      [0.25, 0.25],
      [0.75, 0.75],
    ]) {
      c.moveTo(x * size, y * size);
      c.arc(x * size, y * size, 1.1 * scale, 0, 7);
    }
    c.fill();
  } else {
    kStrokes[pattern](c, size);
    c.stroke();
  }
  const made = c.createPattern(tile, 'repeat');
  patterns.set(key, made);
  return made;
}

// A small sample of a fill, for legends; drawn again when the theme changes.
export function swatch(style) {
  const canvas = document.createElement('canvas');
  canvas.className = 'swatch';
  canvas.setAttribute('aria-hidden', 'true');
  const draw = () => {
    canvas.width = 28;
    canvas.height = 20;
    const c = canvas.getContext('2d');
    c.fillStyle = fillOf(style, 2);
    c.fillRect(0, 0, 28, 20);
  };
  draw();
  onThemeChange(draw);
  return canvas;
}
