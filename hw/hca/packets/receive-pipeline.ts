/** What the receiver's two halves (responder, acknowledgements) and their parts answer, and the reasons why they wait. */
import { stallReasons } from '../../../sim/index.ts';

/** The packet has to wait; the reason is accounted for and the receiver will be woken. */
export const WAIT = -1;

/** What becomes of a request: it is executed, it has been seen before, or it has been dropped or refused. */
export const EXECUTE = 0;
export const DUPLICATE = 1;
export const DROPPED = 2;

/** What is answered beside WAIT where memory is used: go on, or the request has been refused. */
export const ALLOWED = 1;
export const REFUSED = 0;

export const receiverStalls = stallReasons('context', 'translation', 'dma', 'receiveWqe', 'completion');
export const {
  context: STALL_CONTEXT,
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  receiveWqe: STALL_RECEIVE_WQE,
  completion: STALL_COMPLETION,
} = receiverStalls;
