/**
 * Writes events as text: one paragraph per event for people, or JSON lines with one object per event.
 *
 *     1234567.890 ns  host0  commands   SW2HW_CQ in_mod 0x80 (CQN): OK, 812.400 ns
 *         in   logEntries=8 uarPage=0x80 eqn=5 …
 */
import { fieldText } from './layout-fields.ts';
import type { TraceEvent } from './trace-event.ts';

const timeWidth = 18;
const lineWidth = 118;
const indent = '    ';

export type TraceFormat = 'text' | 'json';
export const traceFormats = ['text', 'json'] as const;

/** Picoseconds as nanoseconds with three decimals, without rounding. */
export const nsText = (ps: number | bigint): string => {
  const digits = ps.toString().padStart(4, '0');
  return `${digits.slice(0, -3)}.${digits.slice(-3)} ns`;
};

/** One event, including its final newline. */
export const eventText = (event: TraceEvent, format: TraceFormat): string =>
  format === 'json' ? jsonLine(event) : paragraph(event);

function paragraph({ atPs, node, category, summary, sections }: TraceEvent): string {
  let text = `${nsText(atPs).padStart(timeWidth)}  ${node}  ${category.padEnd(10)} ${summary}\n`;
  for (const { title, fields } of sections) text += wrapped(title, fields.map(fieldText));
  return text;
}

/** A section: its title, then as many fields per line as fit. */
function wrapped(title: string, words: readonly string[]): string {
  let text = '';
  let line = `${indent}${title.padEnd(14)}`;
  const rest = ' '.repeat(line.length);
  let isFresh = true;
  for (const word of words) {
    if (!isFresh && line.length + word.length + 1 > lineWidth) {
      text += `${line}\n`;
      line = rest;
      isFresh = true;
    }
    line += ` ${word}`;
    isFresh = false;
  }
  return `${text}${line}\n`;
}

function jsonLine({ sections, ...event }: TraceEvent): string {
  const shown = sections.map(({ title, fields }) => ({
    title,
    fields: Object.fromEntries(fields.map(({ name, value }) => [name, value])),
  }));
  // A value that no JSON number represents exactly is written in decimal digits.
  const atPs = typeof event.atPs === 'bigint' ? event.atPs.toString() : event.atPs;
  return `${JSON.stringify({ ...event, atPs, sections: shown })}\n`;
}
