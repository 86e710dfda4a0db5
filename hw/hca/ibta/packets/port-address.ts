/**
 * Addresses of a port that the data path uses: those by which it recognises its own packets, and the partitions to
 * which they may belong.
 */
export interface PortAddress {
  /** Base LID as the subnet manager set it; 0 before. */
  readonly lid: number;
  /** LID mask control: number of low LID bits that are ignored when the port compares a LID with its own. */
  readonly lmc: number;
  /** LID of the subnet manager embedded in the HCA; -1, which no packet carries, without one. */
  readonly embeddedManagerLid: number;
  /** Only an active port forwards data packets, also to itself. */
  readonly isActive: boolean;
  /** The GID table: 16 bytes per entry, as in a GRH; unused entries are zero. */
  readonly gids: Uint8Array;
  readonly pkeys: Uint16Array;
  /** Further address tables of an Ethernet port with RoCE. Omitted: packets are of InfiniBand. */
  readonly roce?: RoceTables | undefined;
  /** A packet with a P_Key that the receiver does not accept; the same for Q_Keys. */
  countPkeyViolation(): void;
  countQkeyViolation(): void;
}

/** Tables of an Ethernet port, as software writes them. */
export interface RoceTables {
  /** MACs as 48-bit numbers, and VLAN IDs; unused entries are -1. */
  readonly macs: Float64Array;
  readonly vlans: Int32Array;
  /** Flags by GID: 1 if datagrams from it use IP and UDP. */
  readonly isRoutable: Uint8Array;
  /** Destination port of RoCE v2; undefined with version 1 only. */
  readonly udpPort: number | undefined;
}

/** The LID of all ports, before they have one of their own. */
export const PERMISSIVE_LID = 0xffff;
/** LIDs from here on, except the permissive one, are multicast groups. */
export const FIRST_MULTICAST_LID = 0xc000;

export const isGroupLid = (lid: number): boolean => lid >= FIRST_MULTICAST_LID && lid !== PERMISSIVE_LID;

/** True when packets to `lid` are for this port alone. */
export function isOwnLid(address: PortAddress, lid: number): boolean {
  return lid !== 0 && (lid & (-1 << address.lmc)) === (address.lid & (-1 << address.lmc));
}
