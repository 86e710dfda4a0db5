/**
 * Judges atomics on one word: their returned values must be those of a serial order of all of them that respects real
 * time (an atomic that ended before another began precedes it) and ends in the word's final value (IBTA 10.6.6.3,
 * C9-150 ff.).
 */
import { IBV_WC_SUCCESS, IBV_WR_ATOMIC_FETCH_AND_ADD } from '../../userlib/index.ts';
import type { Played } from '../run-story.ts';
import { patternInto, type SendPlan } from '../story.ts';
import { isAtomicVerb } from '../verbs.ts';
import { isFoundByResponder } from '../verbs-model.ts';
import { isGivenBack, isTakenAway } from './contents.ts';
import { backOf, flowsOf } from './traffic.ts';
import { windowStateOf } from './windows.ts';

interface Operation {
  readonly plan: SendPlan;
  /** The value that it returned; undefined if it failed, when the responder may or may not have carried it out. */
  readonly returned: bigint | undefined;
  readonly fromPs: number;
  readonly toPs: number;
}

export function judgeAtomics(played: Played): string[] {
  const byWord = new Map<string, Operation[]>();
  const flows = flowsOf(played);
  for (const flow of flows)
    for (const history of flow.sends) {
      const { plan, post, end } = history;
      if (!isAtomicVerb(plan.opcode) || plan.remote === undefined) continue;
      // An error at the requester alone does not stop the responder: its result then has no place in the order.
      if (isFoundByResponder(plan.flaw)) continue;
      if (windowStateOf(flow, backOf(flows, flow), history) === 'gone') continue;
      const key = `${flow.to.program}.${plan.remote.area}.${plan.remote.offset}`;
      const isDone =
        end?.status === IBV_WC_SUCCESS &&
        end.bytes !== undefined &&
        !isTakenAway(flow.from.seen, plan.sges, end.toPs) &&
        !isGivenBack(flow.from.seen, plan.sges, post.fromPs, end.toPs);
      const operation = {
        plan,
        returned: isDone ? Buffer.from(end.bytes!, 'base64').readBigUInt64LE() : undefined,
        fromPs: post.fromPs,
        toPs: end?.toPs ?? Number.POSITIVE_INFINITY,
      };
      const list = byWord.get(key);
      if (list === undefined) byWord.set(key, [operation]);
      else list.push(operation);
    }
  return [...byWord].flatMap(([key, operations]) => judgeWord(played, key, operations));
}

function judgeWord(played: Played, key: string, operations: readonly Operation[]): string[] {
  const [program, area, offset] = key.split('.').map(Number) as [number, number, number];
  const seen = played.seen[program];
  if (seen === null || seen === undefined || seen.deregistrations.some((gone) => gone.area === area))
    return [];
  const first = new Uint8Array(8);
  patternInto(first, program, area, 0, offset);
  const final = seen.finals[area];
  const last = final === undefined ? undefined : Buffer.from(final, 'base64').readBigUInt64LE(offset);
  const search = new Search(operations, last);
  if (search.isPossible(Buffer.from(first).readBigUInt64LE(), operations.length)) return [];
  const ids = operations.map(({ plan, returned }) => `${plan.id}:${returned?.toString(16) ?? '?'}`).join(' ');
  return [
    `the atomics on program ${program}'s word ${offset} fit no order (${ids}, at last ${last?.toString(16)})`,
  ];
}

class Search {
  readonly #operations: readonly Operation[];
  readonly #last: bigint | undefined;
  readonly #isDone: boolean[];
  #tries = 20_000;

  constructor(operations: readonly Operation[], last: bigint | undefined) {
    this.#operations = operations;
    this.#last = last;
    this.#isDone = operations.map(() => false);
  }

  /**
   * Whether the remaining operations can follow on a word of this value. Gives up after many tries, and returns true.
   */
  isPossible(value: bigint, left: number): boolean {
    if (this.#tries-- < 0) return true;
    const isAllKnownDone = this.#operations.every(
      ({ returned }, index) => this.#isDone[index] || returned === undefined,
    );
    if (isAllKnownDone && (this.#last === undefined || this.#last === value)) return true;
    if (left === 0) return false;
    for (const [index, operation] of this.#operations.entries()) {
      if (this.#isDone[index] || !this.#isNext(operation)) continue;
      if (operation.returned !== undefined && operation.returned !== value) continue;
      this.#isDone[index] = true;
      if (this.isPossible(after(operation.plan, value), left - 1)) return true;
      this.#isDone[index] = false;
    }
    return false;
  }

  /** True if none of the remaining operations had ended before this one began. */
  #isNext({ fromPs }: Operation): boolean {
    return this.#operations.every(
      ({ returned, toPs }, index) => this.#isDone[index] || returned === undefined || toPs >= fromPs,
    );
  }
}

function after({ opcode, compareAdd, swap }: SendPlan, value: bigint): bigint {
  const operand = BigInt(`0x${compareAdd ?? '0'}`);
  if (opcode === IBV_WR_ATOMIC_FETCH_AND_ADD) return BigInt.asUintN(64, value + operand);
  return value === operand ? BigInt(`0x${swap ?? '0'}`) : value;
}
