// Quantities as the program prints them: about four significant digits and the unit that suits.

function trimmed(value) {
  if (value === 0) return '0';
  const digits = Math.abs(value) >= 1000 ? 0 : 4 - Math.max(1, Math.ceil(Math.log10(Math.abs(value) + 1e-12)));
  const text = value.toFixed(Math.max(0, digits));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function scaled(value, units) {
  let unit = units[0];
  for (const candidate of units) if (Math.abs(value) >= candidate[1]) unit = candidate;
  return `${trimmed(value / unit[1])} ${unit[0]}`;
}

const kBytes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'].map((name, i) => [name, 1024 ** i]);
const kPicoseconds = [
  ['ps', 1],
  ['ns', 1e3],
  ['us', 1e6],
  ['ms', 1e9],
  ['s', 1e12],
];
const metric = (unit) =>
  [
    ['n', 1e-9],
    ['u', 1e-6],
    ['m', 1e-3],
    ['', 1],
    ['k', 1e3],
    ['M', 1e6],
    ['G', 1e9],
  ].map(([prefix, size]) => [prefix + unit, size]);
const kWatts = metric('W');
const kJoules = metric('J');

export const bytes = (value) => (value === 0 ? '0 B' : scaled(value, kBytes));
export const time = (picoseconds) => (picoseconds === 0 ? '0 s' : scaled(picoseconds, kPicoseconds));
export const watts = (value) => (value === 0 ? '0 W' : scaled(value, kWatts));
export const joules = (value) => (value === 0 ? '0 J' : scaled(value, kJoules));
export const percent = (share) => {
  const value = share * 100;
  return `${Math.abs(value) >= 9.95 ? value.toFixed(0) : trimmed(Number(value.toFixed(1)))} %`;
};
export const decimal = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : trimmed(value));

const kByUnit = {bytes, watts, joules, time, seconds: (value) => time(value * 1e12), share: percent};
// `unit` is that of a chart's data: bytes, seconds, joules, watts, share, or any other word, which is printed.
export const quantity = (value, unit) =>
  kByUnit[unit] ? kByUnit[unit](value) : `${decimal(value)}${unit ? ' ' + unit : ''}`;
// The same where a caption has the unit, unless it is one that goes with the size of the value.
export const bare = (value, unit) => (kByUnit[unit] ? quantity(value, unit) : decimal(value));
// At a line of an axis, where 12.5 % must not read 13 %.
export const tick = (value, unit) => (unit === 'share' ? `${decimal(value * 100)} %` : bare(value, unit));
// What a caption says of a quantity: "throughput (samples/s)".
export const captioned = (label, unit) => (unit && !kByUnit[unit] ? `${label} (${unit})` : label);

// A moment on an axis that spans `span`: in the unit of the span, so that ticks read alike.
export function moment(picoseconds, span) {
  let unit = kPicoseconds[0];
  for (const candidate of kPicoseconds) if (span >= candidate[1]) unit = candidate;
  return `${decimal(Number((picoseconds / unit[1]).toPrecision(7)))} ${unit[0]}`;
}

export const words = (name) => name.replaceAll('_', ' ');
export const counted = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
