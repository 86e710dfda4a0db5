/** What the receiver's two halves (responder, acknowledgements) answer, and the reasons why they wait. */

/** The packet has to wait; the reason is accounted for and the receiver will be woken. */
export const WAIT = -1;

export const STALL_CONTEXT = 0;
export const STALL_TRANSLATION = 1;
export const STALL_DMA = 2;
export const STALL_RECEIVE_WQE = 3;
export const STALL_COMPLETION = 4;
export const receiverStallReasons = ['context', 'translation', 'dma', 'receiveWqe', 'completion'] as const;
