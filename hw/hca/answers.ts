/**
 * Return values of the device's stages. Each name has one meaning and one number; a function's type lists those that it
 * can return, so comparing its result with any other is a type error.
 *
 * Reasons that block the work are negative, so functions that count bytes or cycles can return them instead of a count.
 */

/** The work waits in its stage; the reason is accounted for, and the stage will be woken. */
export const WAIT = -1;
/** A page has been requested: the work is resumed when the page is present. */
export const ABSENT = -2;
/** The work may not be done. */
export const REFUSED = -3;
/** The scatter list has no more room. */
export const FULL = -4;

/** An atomic has been answered: no more cycles. */
export const ANSWERED = 0;
/** The whole work is done. */
export const DONE = 1;
/** The whole work is done, and with it the message or response. */
export const DONE_LAST = 2;

/** Outcomes of checking a request: it is executed, it is a duplicate of an executed one, or it is dropped. */
export const EXECUTE = 3;
export const DUPLICATE = 4;
export const DROPPED = 5;

/** A receive queue has no WQE, or cannot be read. */
export const NONE_POSTED = 6;
export const UNREADABLE = 7;

/** Results of a stage that uses memory. */
export type MemoryAnswer = typeof DONE | typeof WAIT | typeof ABSENT | typeof REFUSED;
/** Results of a step of a request. REFUSED means that the requester has received the refusal, too. */
export type StepAnswer = typeof DONE | typeof WAIT | typeof REFUSED;
/** Results of the checks of a request. */
export type CheckAnswer = typeof EXECUTE | typeof DUPLICATE | typeof DROPPED;
/** Results of taking a receive WQE. */
export type ReceiveAnswer = typeof DONE | typeof WAIT | typeof NONE_POSTED | typeof UNREADABLE;
