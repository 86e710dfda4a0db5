/** A diagnosis: the cause by name, in one sentence, with the numbers that prove it, its place, and advice. */

/** `fault`: a request failed, a call was refused, or a program waits for what never comes. `note`: it went well, and cost time or a message. */
export type Weight = 'fault' | 'note';

export interface Cause {
  /** Name of the cause: docs/how-to/why.md lists them. */
  readonly cause: string;
  readonly weight: Weight;
  /** Host that suffers. */
  readonly node: number;
  readonly sentence: string;
  readonly evidence: Readonly<Record<string, number | string>>;
  /** Line of the program at which the request was posted, or the call made. */
  readonly line?: string;
  /** Lines of helper functions that the program's line calls, down to the call itself. */
  readonly within?: readonly string[];
  /** Line at which the mistake is, where that is another; and the lines of its helpers. */
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
  /** Causes of one key are one: what requester and responder say of the same mistake. */
  readonly key?: string;
}

/** A row of a table of rules: what it explains, or undefined where its test fails. */
export type Rule<Symptom> = (symptom: Symptom) => Explanation | undefined;

/** The first rule whose test holds. */
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

/** A duration as people say it. */
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
