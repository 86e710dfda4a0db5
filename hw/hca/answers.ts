/**
 * What the stages of the device answer. Each name has one meaning and one number; a function's type says which of them it can
 * answer, so that comparing its answer with another one is a type error.
 *
 * What stands in the way of the work is negative: functions that count bytes or cycles answer it in place of a count.
 */

/** The work waits where it is; the reason is accounted for, and the stage will be woken. */
export const WAIT = -1;
/** A page has been asked for: the work is resumed when it is there. */
export const ABSENT = -2;
/** The work may not be done. */
export const REFUSED = -3;
/** The scatter list has no more room. */
export const FULL = -4;

/** An atomic has been answered: no more cycles. */
export const ANSWERED = 0;
/** All of it is done. */
export const DONE = 1;
/** The same, and nothing of the message or answer is left. */
export const DONE_LAST = 2;

/** What becomes of a request: it is executed, it has been executed before, or it is dropped. */
export const EXECUTE = 3;
export const DUPLICATE = 4;
export const DROPPED = 5;

/** A receive queue has no WQE, or cannot be read. */
export const NONE_POSTED = 6;
export const UNREADABLE = 7;

/** Of a stage that uses memory. */
export type MemoryAnswer = typeof DONE | typeof WAIT | typeof ABSENT | typeof REFUSED;
/** Of a step of a request, for which what is refused has been refused to the requester too. */
export type StepAnswer = typeof DONE | typeof WAIT | typeof REFUSED;
/** Of the checks of a request. */
export type CheckAnswer = typeof EXECUTE | typeof DUPLICATE | typeof DROPPED;
/** Of the taking of a receive WQE. */
export type ReceiveAnswer = typeof DONE | typeof WAIT | typeof NONE_POSTED | typeof UNREADABLE;
