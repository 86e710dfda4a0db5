/**
 * Memory keys. An lkey or rkey is (index << 8) | variant: the upper 24 bits find the MPT slot, the whole key must match.
 *
 *   key          | 31            index             8 | 7 variant 0 |
 *   index form   | 31 variant 24 | 23            index           0 |     key rotated right by 8, as the MPT stores it
 *
 * Source: interface sheet 7.1, 5.4.
 */

/** The key for an allocator number (slot plus generation bits): the number rotated left by 8. */
export const keyOfIndexForm = (indexForm: number): number => ((indexForm << 8) | (indexForm >>> 24)) >>> 0;

/** The key in the form that the MPT stores: rotated right by 8. */
export const indexFormOfKey = (key: number): number => ((key >>> 8) | (key << 24)) >>> 0;

/** The slot in the dMPT table of 2^logMpts entries. */
export const mptIndexOfKey = (key: number, logMpts: number): number => (key >>> 8) & ((1 << logMpts) - 1);

/** The low byte, which fast-register and window users change themselves. */
export const variantOfKey = (key: number): number => key & 0xff;

/** The key with another variant. */
export const withVariant = (key: number, variant: number): number =>
  ((key & 0xffff_ff00) | (variant & 0xff)) >>> 0;
