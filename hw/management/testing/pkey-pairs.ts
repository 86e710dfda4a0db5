/**
 * Two P_Keys and whether they match: equal in 15 bits that are not 0, and at least one of them a full member's (IBTA
 * volume 1, 10.9.3). Tables of hosts, and ports of switches, are held to the same rows.
 */
export const pkeyPairs: readonly (readonly [left: number, right: number, isMatch: boolean])[] = [
  [0x8001, 0x8001, true],
  [0x8001, 0x0001, true],
  [0x0001, 0x8001, true],
  [0x0001, 0x0001, false],
  [0x8001, 0x8002, false],
  [0x8000, 0x8000, false],
  [0x0000, 0x8000, false],
  [0xffff, 0x7fff, true],
  [0x7fff, 0xffff, true],
];
