/** A diagnosis: the cause by name, in one sentence with its evidence in numbers, its place, and advice. */

/**
 * `fault`: a request failed, a call was refused, or a program waits for an event that never occurs. `note`: everything
 * succeeded, but time or a message was lost.
 */
export type Weight = 'fault' | 'note';

export interface Cause {
  /** Name of the cause: docs/how-to/why.md lists them. */
  readonly cause: string;
  readonly weight: Weight;
  /** The affected host. */
  readonly node: number;
  readonly sentence: string;
  readonly evidence: Readonly<Record<string, number | string>>;
  /** Program line that posted the request or made the call. */
  readonly line?: string;
  /** Lines of helper functions that the program's line calls, down to the call itself. */
  readonly within?: readonly string[];
  /** Line of the mistake, if it differs; and the lines of its helpers. */
  readonly mendLine?: string;
  readonly mendWithin?: readonly string[];
  /** Advice: the change that the user should make. */
  readonly advice: string;
  /** Symptoms with this cause: requests, calls or programs. */
  readonly count: number;
}

/** Answer of a rule to a symptom, without the parts that all rules share. */
export interface Explanation {
  readonly cause: string;
  readonly sentence: string;
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly advice: string;
  readonly mendLine?: string | undefined;
  readonly weight?: Weight;
  /** Causes with the same key are merged: requester and responder report the same mistake. */
  readonly key?: string;
}

/** A row of a table of rules: its explanation, or undefined if its test fails. */
export type Rule<Symptom> = (symptom: Symptom) => Explanation | undefined;

/** The explanation of the first rule whose test holds. */
export function explained<Symptom>(
  rules: readonly Rule<Symptom>[],
  symptom: Symptom,
): Explanation | undefined {
  for (const rule of rules) {
    const explanation = rule(symptom);
    if (explanation !== undefined) return explanation;
  }
  return undefined;
}

export const hex = (value: number): string => `0x${Math.max(0, value).toString(16)}`;
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : noun.endsWith('s') ? 'es' : 's'}`;

/** A duration for people. */
export function durationText(ps: number): string {
  for (const [unit, size] of [
    ['s', 1e12],
    ['ms', 1e9],
    ['µs', 1e6],
  ] as const)
    if (ps >= size) return `${Number((ps / size).toPrecision(4))} ${unit}`;
  return `${Math.round(ps / 1000)} ns`;
}

export const vlanText = (vlan: number | undefined): string =>
  vlan === undefined ? 'no VLAN tag' : `VLAN ${vlan}`;

export const qpName = (node: number, qpn: number): string => `QP ${hex(qpn)} of host ${node}`;
