/** PortInfo's code for a number of data VLs (IBTA volume 1, 14.2.5.6): 1, 2, 4, 8 and 15 are 1 to 5. */
export function vlCapOf(vlCount: number): number {
  return [1, 2, 4, 8, 15].findIndex((count) => count >= vlCount) + 1;
}
