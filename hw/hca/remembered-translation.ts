/**
 * A port's last translation of a key, as long as neither cache has changed since: most accesses of a port are to the page of
 * the one before. It saves the lookups and checks, whose outcome it knows, and nothing that software could notice: hits are
 * counted and lines touched as by a whole translation. Fields that begin as NaN may hold any number.
 */
export class RememberedTranslation {
  /** What was asked for: key, protection domain and rights. */
  key = Number.NaN;
  pd = 0;
  rights = 0;
  /** The translator's version at the time. */
  version = -1;
  /** Lines that were used; none of the MTT for a region of physical addresses. */
  mptLine = -1;
  mttLine = -1;
  /** The part of the page that belongs to the region, and the end of the region: virtual addresses. */
  firstByte = Number.NaN;
  pageEnd = Number.NaN;
  regionEnd = Number.NaN;
  /** What leads from a virtual address of the page to the physical one. */
  distance = Number.NaN;
}
