/** Findings of the linter: one for each rule and object, with the first offending access and the number of offences. */
import type { InstantOf } from '../trace-event.ts';
import { type RuleName, rules, type Severity } from './rules.ts';

export interface Finding {
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly section: string;
  readonly node: string;
  /** Picoseconds since power-on: a bigint where a number would not be exact. */
  readonly atPs: number | bigint;
  /** The subject: `QP 0x41`, `CQ 0x80`, a command. */
  readonly object: string;
  /** The error, with numbers. */
  readonly text: string;
  /** The offending access. */
  readonly access: string;
  /** Number of offences for this object. */
  count: number;
}

/** Greatest number of findings kept; further ones are only counted. */
const findingsMax = 1000;

export class Findings {
  readonly node: string;
  readonly list: Finding[] = [];
  /** Findings beyond the kept ones. */
  droppedCount = 0;
  readonly #seen = new Map<string, Finding>();
  readonly #onFinding: ((finding: Finding) => void) | undefined;

  readonly #instantOf: InstantOf;

  constructor(node: string, onFinding?: (finding: Finding) => void, instantOf: InstantOf = (ps) => ps) {
    this.node = node;
    this.#instantOf = instantOf;
    this.#onFinding = onFinding;
  }

  report(rule: RuleName, object: string, text: string, access: string, atPs: number): void {
    const key = `${rule} ${object}`;
    const before = this.#seen.get(key);
    if (before !== undefined) {
      before.count++;
      return;
    }
    if (this.list.length === findingsMax) {
      this.droppedCount++;
      return;
    }
    const { severity, section } = rules[rule];
    const finding: Finding = {
      rule,
      severity,
      section,
      node: this.node,
      atPs: this.#instantOf(atPs),
      object,
      text,
      access,
      count: 1,
    };
    this.#seen.set(key, finding);
    this.list.push(finding);
    this.#onFinding?.(finding);
  }
}
