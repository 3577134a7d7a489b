// Elements made by hand: texts only ever become text nodes, so markup in a document or schema stays text.

// el("p", { class: "hint", on: { click } }, "text", child): attributes by name; false and null leave one out.
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

// The same for drawings.
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

// A bar whose length is a share of the whole, with its number beside it.
export function bar(share, kind, label = percent(share)) {
  const fill = el("span", { class: `fill ${kind}` });
  fill.style.setProperty("--share", String(Math.min(1, Math.max(0, share))));
  return el("span", { class: "bar" }, fill, el("span", { class: "number" }, label));
}

export function percent(share) {
  if (share === 0) return "0";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

// Text in which blanks that would not be seen are signs.
export function visible(text) {
  return text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "␣");
}

export function option(value, label, chosen) {
  return el("option", { value, selected: value === chosen }, label);
}

// Runs the last call `wait` milliseconds after it was made; earlier ones are left out.
export function later(wait, run) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), wait);
  };
}
