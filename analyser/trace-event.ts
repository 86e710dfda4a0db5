/** What the analyser says of one thing it saw, and the categories a developer asks for. */
import type { ShownField } from './layout-fields.ts';

/** What a trace is made of; `all` in options means every one. */
export const traceCategories = ['mmio', 'commands', 'dma', 'doorbells', 'events', 'interrupts'] as const;
export type TraceCategory = (typeof traceCategories)[number];

/** Kinds of object with a number. */
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
  /** One line that says what happened. */
  readonly summary: string;
  readonly objects: ObjectNumbers;
  /** Name of the command, where there is one. */
  readonly command?: string;
  /** Bus address, where there is one, and how many bytes. */
  readonly address?: number;
  readonly lengthBytes?: number;
  readonly sections: readonly TraceSection[];
}

export const hex = (value: number | bigint): string => `0x${value.toString(16)}`;

/** The instant since power-on of a picosecond of the epoch that is now. */
export type InstantOf = (ps: number) => number | bigint;
