/** One event of the trace, and the categories that a developer selects. */
import type { ShownField } from './layout-fields.ts';

/** Categories of a trace; `all` in options selects every one. */
export const traceCategories = ['mmio', 'commands', 'dma', 'doorbells', 'events', 'interrupts'] as const;
export type TraceCategory = (typeof traceCategories)[number];

/** Kinds of numbered objects. */
export const objectKinds = ['qpn', 'cqn', 'srqn', 'eqn', 'mpt', 'uar', 'port', 'vector'] as const;
export type ObjectKind = (typeof objectKinds)[number];
export type ObjectNumbers = { readonly [Kind in ObjectKind]?: number };

/** A part of an event that has a layout: a mailbox, a segment of a WQE. */
export interface TraceSection {
  readonly title: string;
  readonly fields: readonly ShownField[];
}

export interface TraceEvent {
  /** Picoseconds since power-on: a bigint where a number would not be exact. */
  readonly atPs: number | bigint;
  readonly node: string;
  readonly category: TraceCategory;
  /** One line that describes the event. */
  readonly summary: string;
  readonly objects: ObjectNumbers;
  /** Name of the command, if the event has one. */
  readonly command?: string;
  /** Bus address and length in bytes, if the event has them. */
  readonly address?: number;
  readonly lengthBytes?: number;
  readonly sections: readonly TraceSection[];
}

export const hex = (value: number | bigint): string => `0x${value.toString(16)}`;

/** Picoseconds since power-on of a time in the current epoch. */
export type InstantOf = (ps: number) => number | bigint;
