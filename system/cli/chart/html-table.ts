/** Tables of a page, and text that can be put into one. */

/** @param caption what the table is, for those who do not see the chart above it */
export function tableHtml(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  caption?: string,
): string {
  const cells = (row: readonly string[], tag: string): string =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  const title = caption === undefined ? '' : `<caption>${escaped(caption)}</caption>`;
  return `<div class="scroll" tabindex="0"><table>${title}<thead>${cells(head, 'th')}</thead><tbody>${rows.map((row) => cells(row, 'td')).join('')}</tbody></table></div>`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => entities[sign]!);
