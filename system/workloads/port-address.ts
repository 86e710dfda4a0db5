/**
 * Where a port is found by QPs of other hosts: by its LID; on Ethernet by a GID, and the place of the own GID from which packets go. The
 * GID is that of the IPv4 address by the newest version of RoCE that the card has.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import {
  type AhAttr,
  createAh,
  IBV_GID_TYPE_IB,
  IBV_LINK_LAYER_ETHERNET,
  type IbvAh,
  type IbvContext,
  type IbvPd,
  type PortAttr,
  queryGidTable,
  VerbsError,
} from '../../userlib/index.ts';

/** As programs tell each other. */
export interface PortAddress {
  readonly lid: number;
  /** 16 bytes; left out on InfiniBand. */
  readonly gid?: readonly number[];
}

/** The address of a peer, with what the own port has for it. */
export interface PeerAddress extends PortAddress {
  /** Place of the own GID in the port's table; left out on InfiniBand. */
  readonly sgidIndex?: number;
}

/** Programs use the first. */
const portNum = 1;
const hopLimit = 64;

/**
 * The address of the first port, with the place of its GID.
 * @param gidIndex another place of the table, where the port is of Ethernet
 * @throws ConfigurationError for a place without a GID
 */
export async function ownAddressOf(
  context: IbvContext,
  { lid, linkLayer }: Pick<PortAttr, 'lid' | 'linkLayer'>,
  gidIndex?: number,
): Promise<PeerAddress> {
  if (linkLayer !== IBV_LINK_LAYER_ETHERNET) return { lid };
  const entries = await queryGidTable(context, portNum);
  // First those of the link-local address, then those of the IPv4 address; of each the newer version last.
  const entry = gidIndex === undefined ? entries.at(-1) : entries.find((one) => one.gidIndex === gidIndex);
  if (entry === undefined && gidIndex !== undefined)
    throw new ConfigurationError('gidIndex', gidIndex, `0 to ${entries.length - 1}`);
  if (entry === undefined || entry.gidType === IBV_GID_TYPE_IB)
    throw new InvariantError('GIDs of RoCE', entries.length, 'at least 1');
  return { lid, gid: [...entry.gid], sgidIndex: entry.gidIndex };
}

/** What is told to others of an own address. */
export const announcedOf = ({ lid, gid }: PeerAddress): PortAddress =>
  gid === undefined ? { lid } : { lid, gid };

/** A peer as it is reached from the port with this address. */
export const peerFrom = ({ sgidIndex }: PeerAddress, { lid, gid }: PortAddress): PeerAddress =>
  gid === undefined || sgidIndex === undefined ? { lid } : { lid, gid, sgidIndex };

/** The path to a peer. */
export function pathTo({ lid, gid, sgidIndex }: PeerAddress): AhAttr {
  if (gid === undefined || sgidIndex === undefined)
    return { dlid: lid, sl: 0, srcPathBits: 0, isGlobal: 0, portNum };
  const grh = { dgid: Uint8Array.from(gid), flowLabel: 0, sgidIndex, hopLimit, trafficClass: 0 };
  return { dlid: 0, sl: 0, srcPathBits: 0, isGlobal: 1, grh, portNum };
}

/** Tries of {@link reaching}: as many answers may be lost, one behind the other, as a few faults take. */
const triesMax = 16;

/**
 * Runs a verb that needs the MAC of a peer. On Ethernet the kernel asks for it, and the verb waits for a second; what is lost meanwhile is
 * lost (ETIMEDOUT), and so it is tried again.
 */
export async function reaching<T>({ gid }: PortAddress, verb: () => Promise<T>): Promise<T> {
  for (let left = gid === undefined ? 0 : triesMax - 1; left > 0; left--) {
    try {
      return await verb();
    } catch (error) {
      if (!(error instanceof VerbsError && error.code === 'ETIMEDOUT')) throw error;
    }
  }
  return verb();
}

/** An address handle of datagrams to a peer. */
export const handleTo = (pd: IbvPd, peer: PeerAddress): Promise<IbvAh> =>
  reaching(peer, () => createAh(pd, pathTo(peer)));
