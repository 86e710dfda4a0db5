/** The routes of a port to its peers: by the subnet administration of InfiniBand, or on Ethernet by the MACs of neighbours. */
import type { Cpu } from '../platform.ts';
import type { RouteTaken } from './path-queries.ts';

/** Takes a GID, or an errno. It must not wait. */
export type GidTaken = (outcome: Uint8Array | number) => void;

export interface Routes {
  /** Addresses of this host: that of IPv4, and on Ethernet the link-local one of IPv6. */
  readonly ownAddresses: readonly string[];
  /** Finds the GID of an address. @throws KernelError ENETUNREACH */
  findGid(cpu: Cpu, address: string, timeoutMs: number, taken: GidTaken): void;
  /** Finds the path to a GID. */
  findPath(cpu: Cpu, gid: Uint8Array, timeoutMs: number, taken: RouteTaken): void;
}
