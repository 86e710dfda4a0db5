/** Reads the bus analyser's trace of a host (docs/how-to/trace.md) back into events: a summary and sections for each. */
import type { DecodedSection } from '../../protocol.ts';

export interface BusEvent {
  readonly node: number;
  /** Since power-on. */
  readonly atPs: number;
  readonly category: string;
  readonly summary: string;
  readonly sections: readonly DecodedSection[];
}

const head = /^ *(\d+)\.(\d{3}) ns {2}(?:host|guest)(\d+) {2}(\w+) +(.*)$/;
/** A section begins with its title; its further lines begin with blanks only. */
const sectionLine = /^ {4}(.{14}) (.*)$/;
/** A field: its name, and a value, which may be a name followed by a number in brackets. */
const field = /[\w.[\]]+=(?:[^\s(]+ \([^)]*\)|\S+)/g;

/** @param pieces of the trace, in order */
export function busEvents(pieces: readonly string[]): BusEvent[] {
  const events: (Omit<BusEvent, 'sections'> & { sections: { title: string; fields: string[] }[] })[] = [];
  for (const line of pieces.join('').split('\n')) {
    const begin = head.exec(line);
    if (begin !== null) {
      const [, ns, ps, node, category, summary] = begin;
      const atPs = Number(ns) * 1000 + Number(ps);
      events.push({ node: Number(node), atPs, category: category!, summary: summary!, sections: [] });
      continue;
    }
    const more = sectionLine.exec(line);
    const event = events.at(-1);
    if (more === null || event === undefined) continue;
    const title = more[1]!.trim();
    if (title !== '' || event.sections.length === 0) event.sections.push({ title, fields: [] });
    event.sections.at(-1)!.fields.push(...(more[2]!.match(field) ?? []));
  }
  return events;
}
