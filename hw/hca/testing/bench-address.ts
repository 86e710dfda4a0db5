/** The addresses of a bench node's port, which specs may change; no subnet manager does. */
import type { PortAddress, RoceTables } from '../ibta/packets/port-address.ts';

export class BenchAddress implements PortAddress {
  lid: number;
  lmc = 0;
  isActive = true;
  embeddedManagerLid = -1;
  readonly gids = new Uint8Array(16 * 16);
  readonly pkeys = new Uint16Array(16);
  /** Tables of Ethernet ports with RoCE. */
  roce: RoceTables | undefined;
  pkeyViolations = 0;
  qkeyViolations = 0;

  constructor(lid: number) {
    this.lid = lid;
    this.gids.set([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, lid]);
    this.pkeys[0] = 0xffff;
  }

  countPkeyViolation(): void {
    this.pkeyViolations++;
  }

  countQkeyViolation(): void {
    this.qkeyViolations++;
  }
}
