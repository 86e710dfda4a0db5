/** A memory key: a region or a window of it, independent of the format of the card's entry. */
import { placeInPage, type VirtualAddress, type Wide } from '../../../base/index.ts';

export const KeyState = {
  /** Accesses by the key are checked and served. */
  VALID: 0,
  /** Allocated, and not yet registered, or invalidated: a region for fast registration, a window of type 2. */
  FREE: 1,
  /** Owned by software. */
  SOFTWARE: 2,
} as const;
export type KeyState = (typeof KeyState)[keyof typeof KeyState];

/** Value instead of the key of a window's region: the window is not bound. */
export const NO_REGION = 0;

export class KeyRecord {
  state: KeyState = KeyState.SOFTWARE;
  /** The whole key, with its variant. */
  key: Wide = 0;
  pd = 0;
  /** RIGHT_ bits. */
  rights = 0;
  isRegion = false;
  /** Virtual addresses are bus addresses. */
  isPhysical = false;
  /** An absent page is requested from software. */
  isOnDemand = false;
  /** Virtual address of the first byte, with its top. */
  start: VirtualAddress = 0;
  startTop = 0;
  lengthBytes: Wide = 0;
  /** Byte offset of the first page's entry in the table of translations, and the entries of a region for fast registration. */
  translationOffset: Wide = 0;
  translationCount = 0;
  logPageBytes = 0;
  /**
   * Whether {@link firstByteOffset} gives the offset of the first byte in its page, because the virtual address does
   * not.
   */
  hasFirstByteOffset = false;
  firstByteOffset = 0;
  /** Windows: type 2, the QP to which it is bound, and the key of the region under it. */
  isOfQp = false;
  boundQpn = 0;
  regionKey: Wide = NO_REGION;
  /** Number of windows bound to a region. */
  boundWindows = 0;
  allowsBinding = false;
  allowsFastRegister = false;
  allowsRemoteFastRegister = false;
  allowsLocalInvalidate = false;
  allowsRemoteInvalidate = false;

  /** Place of the first byte in its page. */
  get startInPage(): number {
    return this.hasFirstByteOffset
      ? this.firstByteOffset
      : placeInPage(this.start, this.startTop, 2 ** this.logPageBytes);
  }
}
