/** Answers of a translation: the outcomes of the translator's checks, in their order. */

/** The reserved key: local access to all memory by DMA addresses, for QPs that are allowed it. Its index is the firmware's. */
export const RESERVED_LKEY = 0xff00;

export const TRANSLATED = 0;
/** The entry is not on chip: the port will be woken. */
export const PENDING = 1;
/**
 * The region does not exist, is not valid, or has another key variant. This and the following results end the access.
 */
export const BAD_KEY = 2;
export const BAD_PD = 3;
export const OUT_OF_BOUNDS = 4;
export const MISSING_RIGHT = 5;
/** The page is not present in the MTT, or ICM or memory could not be read. */
export const BAD_PAGE = 6;
/** The page of an on-demand region is not present: software must be asked for it. */
export const PAGE_FAULT = 7;

/** Results for a piece of a queue's buffer, which only the MTT translates. */
export type BufferTranslation = typeof TRANSLATED | typeof PENDING | typeof BAD_PAGE;
export type Translation =
  | BufferTranslation
  | typeof BAD_KEY
  | typeof BAD_PD
  | typeof OUT_OF_BOUNDS
  | typeof MISSING_RIGHT
  | typeof PAGE_FAULT;
