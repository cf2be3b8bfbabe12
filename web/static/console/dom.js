// Building and changing elements. Text only ever enters as text: nothing here parses HTML.

const CHANGED_MS = 2000;

/** Make an element; attributes that are null or false are left out, functions become listeners. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

export const byId = (id) => document.getElementById(id);

/** Mark elements as just changed; the style sheet decides how that looks. */
export function flash(elements) {
  for (const element of elements) element.classList.add("changed");
  setTimeout(() => {
    for (const element of elements) element.classList.remove("changed");
  }, CHANGED_MS);
}

/** Replace the content of a block, marking the facts (`data-fact`) whose text is another than before. */
export function replaceMarked(block, children, { mark = true } = {}) {
  const before = new Map();
  for (const fact of block.querySelectorAll("[data-fact]")) before.set(fact.dataset.fact, fact.textContent);
  block.replaceChildren();
  append(block, [children]);
  if (!mark || before.size === 0) return;
  const facts = [...block.querySelectorAll("[data-fact]")];
  flash(facts.filter((fact) => before.get(fact.dataset.fact) !== fact.textContent));
}
