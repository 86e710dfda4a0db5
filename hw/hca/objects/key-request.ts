/** Operands of a work request on memory keys: fast registration, invalidation, or binding of a window. */
import type { BusAddress, VirtualAddress } from '../../../base/index.ts';

/** One object per record of a work request, made when first needed. */
export class KeyRequest {
  /** The key to invalidate; of a registration or a binding the new one, of which the low byte is the consumer's. */
  key = 0;
  /** Of a binding: the region's key. */
  regionKey = 0;
  address: VirtualAddress = 0;
  addressTop = 0;
  /** Of a binding, 0 takes it back. */
  lengthBytes = 0;
  /** RIGHT_ bits. */
  rights = 0;
  isType2 = false;
  isZeroBased = false;
  /** Of a registration: where its list of pages is, their size, and how far in the first of them it begins. */
  listAddress: BusAddress = 0;
  logPageBytes = 0;
  firstByteOffset = 0;
}
