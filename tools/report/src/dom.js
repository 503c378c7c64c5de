// Elements without markup: whatever a user named goes in as text and stays text.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) if (child !== undefined && child !== null) node.append(child);
  return node;
}

// A part that is made when it is first opened.
export function disclosure(summary, make) {
  const details = el('details', {}, el('summary', {}, summary));
  details.addEventListener('toggle', () => details.open && details.children.length === 1 && details.append(make()));
  return details;
}

export function toggle(label, pressed, change, properties = {}) {
  const button = el('button', {type: 'button', 'aria-pressed': String(pressed), ...properties}, label);
  button.addEventListener('click', () => {
    const now = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(now));
    change(now);
  });
  return button;
}
