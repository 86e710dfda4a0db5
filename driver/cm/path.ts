/** Destination of a connection: the path between two ports, as a PathRecord has it (IBTA vol 1, 15.2.5.16). */

import type { MadAddress } from './management-queue-pair.ts';

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
  /** Present on Ethernet, which has no LIDs. */
  readonly roce?: RocePath;
}

/** Attributes that a packet needs to reach a GID on Ethernet. */
interface RocePath {
  /** Index of the source GID. */
  readonly sgidIndex: number;
  readonly hopLimit: number;
  /** 6 bytes, of the remote port. */
  readonly mac: Uint8Array;
}

/** QP1 of the remote port. */
export const madAddressOf = ({ remote, serviceLevel, roce }: Path): MadAddress => ({
  lid: remote.lid,
  serviceLevel,
  ...(roce === undefined ? {} : { roce: { gid: remote.gid, mac: roce.mac } }),
});

/** Used instead of LIDs in a REQ if packets are routed: the permissive LID, since the real one is unknown (Linux cm_format_req). */
export const permissiveLid = 0xffff;
