// The numbers of a run as the program writes them, ready to draw. Times are in picoseconds.

// Written as differences to the one before.
export function sums(differences) {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < values.length; ++i) values[i] = sum += differences[i];
  return values;
}

export function decodeMemory(memory) {
  const times = sums(memory.time);
  const classes = Object.entries(memory.alive).map(([name, differences]) => ({name, values: sums(differences)}));
  return {...memory, times, classes};
}

export function decodeTrack(track) {
  const start = sums(track.start);
  const end = start.map((time, i) => time + track.length[i]);
  const pairs = new Map((track.pairs ?? []).map(([slice, ...halves]) => [slice, halves]));
  return {
    ...track,
    start,
    end,
    pairs,
    stalls: {cause: track.stalls.cause, start: sums(track.stalls.start), length: track.stalls.length},
  };
}

export function decodeStays(stays) {
  const begin = sums(stays.begin);
  return {...stays, begin};
}

// A map of addresses: where blocks and the ranges that hold them begin and end, also of those that outlive the run.
export function decodeAddresses(addresses, makespan) {
  const withTimes = (items) => {
    const begin = sums(items.begin);
    return {...items, begin, end: begin.map((at, i) => (items.length[i] === null ? makespan : at + items.length[i]))};
  };
  return {...addresses, ranges: withTimes(addresses.ranges), blocks: withTimes(addresses.blocks)};
}

// The largest that are alive in a memory at a moment.
export function aliveAt(stays, memory, time, most) {
  const found = [];
  let count = 0;
  const {begin, length, bytes} = stays;
  for (let i = 0; i < begin.length && begin[i] <= time; ++i) {
    if (stays.memory[i] !== memory || (length[i] !== null && begin[i] + length[i] <= time)) continue;
    ++count;
    if (found.length === most && bytes[found[most - 1]] >= bytes[i]) continue;
    let at = found.length;
    while (at > 0 && bytes[found[at - 1]] < bytes[i]) --at;
    found.splice(at, 0, i);
    if (found.length > most) found.pop();
  }
  return {found, count};
}
