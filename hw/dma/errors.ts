/** Results of a DMA request, and the error for a caller that violates the engines' contract. */
import { SimulatorError } from '../../base/index.ts';

/** Status of a finished read, as passed to `onDone`. */
export const DmaStatus = {
  ok: 0,
  unsupportedRequest: 1,
  completerAbort: 2,
  poisoned: 3,
  timeout: 4,
  /** Bus mastering is off: nothing was sent. */
  busMasterDisabled: 5,
} as const;

/** A request that its block must never make: empty, without room, or outside the memory. */
export class DmaRequestError extends SimulatorError {
  override readonly name = 'DmaRequestError';
}
