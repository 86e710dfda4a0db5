/** Paragraphs of Markdown pages, in lines of at most 120 characters. */

/**
 * Wraps a text into lines of at most 120 characters, broken between words; inline code and links stay whole.
 * @param first prefix of the first line, such as `- ` for a list item; later lines are indented by the same amount
 */
export function paragraph(text: string, first = ''): string {
  const rest = ' '.repeat(first.length);
  const words = text.match(/(?:`[^`]*`|\[[^\]]*\]\([^)\s]*\)|\S)+/g) ?? [];
  const lines: string[] = [];
  let line = first;
  for (const word of words) {
    const isEmpty = line === first || line === rest;
    if (isEmpty) line += word;
    else if (line.length + 1 + word.length <= 120) line += ` ${word}`;
    else {
      lines.push(line);
      line = rest + word;
    }
  }
  return [...lines, line].join('\n');
}
