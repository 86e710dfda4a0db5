/** The ports of the translator and the context caches, one for each block that uses them. */

/** Users of the translator and the context caches: each waits for at most one miss. */
export const PORT_WQE_FETCH = 0;
export const PORT_REQUESTER = 1;
export const PORT_RECEIVER = 2;
export const PORT_RESPONSE = 3;
export const PORT_RECEIVE_FETCH = 4;
export const PORT_COMPLETION = 5;
export const PORT_COUNT = 6;
/** Their names in reports. */
export const portNames = [
  'wqeFetch',
  'requester',
  'receiver',
  'response',
  'receiveFetch',
  'completion',
] as const;
