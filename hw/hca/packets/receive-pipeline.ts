/** The reasons why the receiver's two halves (responder, acknowledgements) and their parts wait. */
import { stallReasons } from '../../../sim/index.ts';

export const receiverStalls = stallReasons(
  'context',
  'translation',
  'dma',
  'receiveWqe',
  'completion',
  'keys',
);
export const {
  context: STALL_CONTEXT,
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  receiveWqe: STALL_RECEIVE_WQE,
  completion: STALL_COMPLETION,
  keys: STALL_KEYS,
} = receiverStalls;
