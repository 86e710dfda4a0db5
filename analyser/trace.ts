/** Where events go: through the filter, as lines, into the sink. What the filter leaves out is not even made. */

import type { TextSink } from '../base/index.ts';
import type { TraceFilter } from './filter.ts';
import type { InstantOf, ObjectNumbers, TraceCategory, TraceSection } from './trace-event.ts';
import { eventText, type TraceFormat } from './trace-text.ts';

/** An event without what the trace itself adds. */
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

  /** The instant since power-on of a picosecond of the epoch. */
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
