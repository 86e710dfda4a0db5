/** Membership of partitions by P_Key: IBTA volume 1, 10.9. */
const PKEY_FULL_MEMBER = 0x8000;
const PKEY_BASE_MASK = 0x7fff;

/** The low 15 bits agree, and one of the two at least is a full member (10.9.1.1). 0 in them is no partition. */
export function isSamePartition(left: number, right: number): boolean {
  return (
    (left & PKEY_BASE_MASK) !== 0 &&
    (left & PKEY_BASE_MASK) === (right & PKEY_BASE_MASK) &&
    ((left | right) & PKEY_FULL_MEMBER) !== 0
  );
}
