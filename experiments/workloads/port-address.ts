/**
 * Addresses of ports as programs exchange them: a LID on InfiniBand; a GID on Ethernet, and on InfiniBand if packets
 * carry a GRH. The default GID on Ethernet is that of the IPv4 address by the newest version of RoCE that the card
 * supports.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import {
  type AhAttr,
  createAh,
  IBV_GID_TYPE_IB,
  IBV_LINK_LAYER_ETHERNET,
  IBV_TRANSPORT_IWARP,
  type IbvAh,
  type IbvContext,
  type IbvPd,
  type PortAttr,
  queryGidTable,
  VerbsError,
} from '../../userlib/index.ts';

/** As programs exchange it. */
export interface PortAddress {
  readonly lid: number;
  /** 16 bytes; left out if packets carry no GRH. */
  readonly gid?: readonly number[];
  /** TCP port at which the program listens; left out if its QPs are not connected by TCP. */
  readonly sinPort?: number;
}

/** Routing of packets; if left out: as the link layer requires. */
export interface RouteChoice {
  /** Index of the own GID in the port's table. On InfiniBand packets then carry a GRH. */
  readonly gidIndex?: number;
  /** Traffic class of the GRH or IP header; on InfiniBand it implies a GRH. */
  readonly trafficClass?: number;
  /** Service level on InfiniBand; left out: 0. */
  readonly serviceLevel?: number;
}

/** The address of a peer, with the corresponding values of the own port. */
export interface PeerAddress extends PortAddress, Omit<RouteChoice, 'gidIndex'> {
  /** Index of the own GID in the port's table; left out if packets carry no GRH. */
  readonly sgidIndex?: number;
  /** Static rate of paths, by its code (IBTA vol 1, 15.2.5.16); left out: that of the line. */
  readonly staticRate?: number;
}

/** Programs use the first. */
const portNum = 1;
const hopLimit = 64;

/**
 * Returns the address of the first port, with the index of its GID.
 * @throws ConfigurationError for an index without a GID
 */
export async function ownAddressOf(
  context: IbvContext,
  { lid, linkLayer }: Pick<PortAttr, 'lid' | 'linkLayer'>,
  { gidIndex, trafficClass, serviceLevel }: RouteChoice = {},
): Promise<PeerAddress> {
  if (context.device.transportType === IBV_TRANSPORT_IWARP) return { lid };
  const isEthernet = linkLayer === IBV_LINK_LAYER_ETHERNET;
  const level = serviceLevel === undefined ? {} : { serviceLevel };
  if (!isEthernet && gidIndex === undefined && trafficClass === undefined) return { lid, ...level };
  const entries = await queryGidTable(context, portNum);
  const route = trafficClass === undefined ? {} : { trafficClass };
  // First the GIDs of the link-local address, then those of the IPv4 address; of each the newer version last.
  const usual = isEthernet ? entries.at(-1) : entries[0];
  const entry = gidIndex === undefined ? usual : entries.find((one) => one.gidIndex === gidIndex);
  if (entry === undefined && gidIndex !== undefined)
    throw new ConfigurationError('gidIndex', gidIndex, `0 to ${entries.length - 1}`);
  if (entry === undefined || (isEthernet && entry.gidType === IBV_GID_TYPE_IB))
    throw new InvariantError('GIDs of the port', entries.length, 'at least 1');
  return { lid, gid: [...entry.gid], sgidIndex: entry.gidIndex, ...route, ...level };
}

/** The parts of an own address that peers receive. */
export const announcedOf = ({ lid, gid }: PeerAddress): PortAddress =>
  gid === undefined ? { lid } : { lid, gid };

/** A peer as reached from the port with this address. */
export const peerFrom = (
  { sgidIndex, trafficClass, serviceLevel, staticRate }: PeerAddress,
  { lid, gid, sinPort }: PortAddress,
): PeerAddress => {
  if (sinPort !== undefined) return { lid, sinPort };
  const level = {
    ...(serviceLevel === undefined ? {} : { serviceLevel }),
    ...(staticRate === undefined ? {} : { staticRate }),
  };
  if (gid === undefined || sgidIndex === undefined) return { lid, ...level };
  return { lid, gid, sgidIndex, ...(trafficClass === undefined ? {} : { trafficClass }), ...level };
};

/** The path to a peer. */
export function pathTo(peer: PeerAddress): AhAttr {
  const { lid, gid, sgidIndex, trafficClass = 0, serviceLevel: sl = 0, staticRate } = peer;
  const path = {
    ...{ dlid: lid, sl, srcPathBits: 0, portNum },
    ...(staticRate === undefined ? {} : { staticRate }),
  };
  if (gid === undefined || sgidIndex === undefined) return { ...path, isGlobal: 0 };
  const grh = { dgid: Uint8Array.from(gid), flowLabel: 0, sgidIndex, hopLimit, trafficClass };
  return { ...path, isGlobal: 1, grh };
}

/** Number of attempts of {@link reaching}: more than the answers that a few faults drop in succession. */
const triesMax = 16;

/**
 * Runs a verb that needs the MAC of a peer. On Ethernet the kernel sends one request for it, and the verb waits for a
 * second; a lost answer makes it fail (ETIMEDOUT), and so it is retried.
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

/** An address handle for datagrams to a peer. */
export const handleTo = (pd: IbvPd, peer: PeerAddress): Promise<IbvAh> =>
  reaching(peer, () => createAh(pd, pathTo(peer)));
