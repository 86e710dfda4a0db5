/**
 * Waiting for a completion: on the CQ's memory, or asleep until an event.
 *
 *     poll    CQE in memory ─ half a polling iteration
 *     event   CQE ─ EQE and message ─ delivery ─ entry ─ handler ─ dispatch ─ [exit] ─ context switch
 */
import type { Path } from './path.ts';
import { gathered, type Terms } from './terms.ts';
import { pollPs, takeCompletionPs } from './verbs.ts';

export type WaitingBy = 'poll' | 'event';

/** Vectors of the driver (driver/interrupts.ts), which are assigned to the cores in rotation (host/interrupt-controller.ts). */
export const asyncVector = 0;
export const completionVector = 1;
/** Core of a host's first program. */
const programCore = 0;

/** Terms from an interrupt message at the root complex until the waiting thread continues. */
export function interruptTerms(path: Path, vector: number): Terms {
  const { core, interrupt, cost } = path.config.host;
  const { entryCycles, exitCycles, deliveryNs } = interrupt;
  // A thread on the interrupted core continues when the handler has armed the queue and returned.
  const isOnOwnCore = vector % core.count === programCore;
  return [
    { name: 'interruptDelivery', ps: deliveryNs * 1000 },
    { name: 'interruptEntry', ps: path.core(entryCycles) },
    { name: 'interruptHandler', ps: path.core(cost.interruptHandler + cost.eventDispatch) },
    { name: 'interruptExit', ps: isOnOwnCore ? path.core(cost.mmioStore + exitCycles) : 0 },
    { name: 'contextSwitch', ps: path.core(cost.contextSwitch) },
  ];
}

/** Terms from a CQE in memory until the program has polled it. */
export function waitTerms(path: Path, by: WaitingBy): Terms {
  const taken = { name: 'completion', ps: takeCompletionPs(path) };
  if (by === 'poll') return [{ name: 'poll', ps: pollPs(path) }, taken];
  return gathered([{ name: 'event', ps: path.eventPs() }, ...interruptTerms(path, completionVector), taken]);
}
