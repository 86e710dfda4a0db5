/** Where connections go: the path between two ports, as a PathRecord has it (IBTA vol 1, 15.2.5.16). */

interface PortAddress {
  readonly lid: number;
  /** 16 bytes. */
  readonly gid: Uint8Array;
}

export interface Path {
  readonly local: PortAddress;
  readonly remote: PortAddress;
  readonly serviceLevel: number;
  /** MTU code of the verbs. */
  readonly mtu: number;
  /** Rate code: 2 is 2.5 Gbit/s, 7 is 40 Gbit/s. */
  readonly rate: number;
  /** Exponent of 4.096 µs. */
  readonly packetLifeTime: number;
}
