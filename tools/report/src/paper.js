// Paper is finer than a screen. uPlot draws anew where the ratio of pixels changes, and learns that from a media query: so what is
// printed is announced to it as a finer screen. To be imported before uPlot.
const kPixelRatio = 3;

const onScreen = Object.getOwnPropertyDescriptor(window, 'devicePixelRatio');
const matches = window.matchMedia.bind(window);
const queries = new Set();

window.matchMedia = (query) => {
  const list = matches(query);
  if (query.includes('min-resolution')) queries.add(list);
  return list;
};

export function drawForPaper(isPaper) {
  Object.defineProperty(
    window,
    'devicePixelRatio',
    isPaper ? {configurable: true, get: () => Math.max(kPixelRatio, onScreen.get.call(window))} : onScreen,
  );
  // The one that is asked anew in answer is not to be answered, too.
  for (const query of [...queries]) query.dispatchEvent(new Event('change'));
}
