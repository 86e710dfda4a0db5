/**
 * Tables in a place that is narrower than they are. In a place of less than 840 pixels, a table of the class `below840`
 * becomes blocks, one for each row: the row's name, followed by pairs of column name and figure, as many per line as
 * fit.
 */

/** Step between distinct widths, in pixels. */
const stepPx = 40;
/** The narrowest place on a page, and a width beyond all pages. */
const [leastPx, mostPx] = [360, 4000] as const;

/** The class of a table by its width in pixels; empty for a table that fits everywhere. */
export function stackedClass(widthPx: number): string {
  return widthPx <= leastPx ? '' : `below${Math.min(mostPx, Math.ceil(widthPx / stepPx) * stepPx)}`;
}

/** Style sheet of the classes used in a page's text. */
export function stackedStyle(text: string): string {
  const names = new Set([...text.matchAll(/<table class="(below\d+)"/g)].map(([, name]) => name!));
  return [...names].map((name) => styleOf(name, Number(name.slice('below'.length)))).join('\n');
}

const styleOf = (name: string, px: number): string => {
  const own = `table.${name}`;
  return `@container (max-width: ${px - 0.1}px) {
${own}, ${own} > tbody { display: block; } ${own} > thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
${own} > tbody > tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 11rem), 1fr)); column-gap: 1.4rem; padding: 0.35rem 0; border-bottom: 1px solid var(--line); }
${own} th, ${own} td { border: 0; min-width: 0; padding: 0.05rem 0; white-space: normal; overflow-wrap: break-word; } ${own} th[scope=row] { position: static; grid-column: 1 / -1; font-weight: 600; }
${own} td { display: flex; justify-content: space-between; gap: 0.8rem; } ${own} td::before { content: attr(data-label); color: var(--dim); text-align: left; min-width: 0; overflow-wrap: break-word; }
${own} td:is(.said, .worded) { display: block; grid-column: 1 / -1; min-width: 0; overflow-wrap: anywhere; } ${own} td:is(.said, .worded)::before { content: attr(data-label) ': '; } ${own} :is(td, th):empty { display: none; }
}`;
};
