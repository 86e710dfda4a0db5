/** Operands of a work request on memory keys: fast registration, invalidation, or binding of a window. */
import type { BusAddress, VirtualAddress } from '../../../base/index.ts';

/** One object per record of a work request, made when first needed. */
export class KeyRequest {
  /** The key to invalidate, or the new key of a registration or binding, whose low byte the consumer chooses. */
  key = 0;
  /** Key of the region to which a window is bound. */
  regionKey = 0;
  address: VirtualAddress = 0;
  addressTop = 0;
  /** Length in bytes; a binding of length 0 unbinds the window. */
  lengthBytes = 0;
  /** RIGHT_ bits. */
  rights = 0;
  isType2 = false;
  isZeroBased = false;
  /** Address of a registration's page list, the size of its pages, and the region's offset in the first page. */
  listAddress: BusAddress = 0;
  logPageBytes = 0;
  firstByteOffset = 0;
}
