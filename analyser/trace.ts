/** Passes events through the filter, formats them as lines and writes them to the sink. Events that the filter rejects are not built. */

import type { TextSink } from '../base/index.ts';
import type { TraceFilter } from './filter.ts';
import type { InstantOf, ObjectNumbers, TraceCategory, TraceSection } from './trace-event.ts';
import { eventText, type TraceFormat } from './trace-text.ts';

/** An event without the fields that the trace adds. */
export interface EventDetails {
  readonly objects?: ObjectNumbers;
  readonly command?: string;
  readonly address?: number;
  readonly lengthBytes?: number;
  readonly sections?: readonly TraceSection[];
}

export class Trace {
  readonly node: string;
  eventCount = 0;
  readonly #filter: TraceFilter | undefined;
  readonly #sink: TextSink | undefined;
  readonly #format: TraceFormat;
  readonly #instantOf: InstantOf;

  constructor(
    node: string,
    filter: TraceFilter | undefined,
    sink: TextSink | undefined,
    format: TraceFormat,
    instantOf: InstantOf = (ps) => ps,
  ) {
    this.node = node;
    this.#filter = sink === undefined ? undefined : filter;
    this.#sink = sink;
    this.#format = format;
    this.#instantOf = instantOf;
  }

  wants(category: TraceCategory): boolean {
    return this.#filter?.wants(category) ?? false;
  }

  /** Picoseconds since power-on of a time in the current epoch. */
  instantOf(ps: number): number | bigint {
    return this.#instantOf(ps);
  }

  emit(category: TraceCategory, ps: number, summary: string, details: EventDetails = {}): void {
    if (!this.wants(category)) return;
    const atPs = this.#instantOf(ps);
    const { objects = {}, sections = [], ...rest } = details;
    const event = { atPs, node: this.node, category, summary, objects, ...rest, sections };
    if (!this.#filter!.passes(event)) return;
    this.eventCount++;
    this.#sink!.write(eventText(event, this.#format));
  }

  close(): void {
    this.#sink?.close();
  }
}
