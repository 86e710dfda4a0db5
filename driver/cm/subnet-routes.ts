/**
 * Routes of a port of InfiniBand: addresses are those of the host's table, which stands for IPoIB's interface and its neighbours, and
 * the subnet administration gives the path to a port.
 */
import { msToPs } from '../../base/index.ts';
import type { Cpu, Neighbour } from '../platform.ts';
import type { ProtocolTimers } from '../protocol-timers.ts';
import { errnoNumbers } from '../uapi.ts';
import type { PathQueries, RouteTaken } from './path-queries.ts';
import type { GidTaken, Routes } from './routes.ts';

export class SubnetRoutes implements Routes {
  readonly #paths: PathQueries;
  readonly #timers: ProtocolTimers;
  readonly #own: Neighbour;
  readonly #neighbours: readonly Neighbour[];

  constructor(
    { paths, timers }: { readonly paths: PathQueries; readonly timers: ProtocolTimers },
    own: Neighbour,
    neighbours: readonly Neighbour[],
  ) {
    this.#paths = paths;
    this.#timers = timers;
    this.#own = own;
    this.#neighbours = neighbours;
  }

  get ownAddresses(): readonly string[] {
    return [this.#own.address];
  }

  /** An address that the table lacks is reported after the time-out, as a neighbour that does not answer. */
  findGid(_cpu: Cpu, address: string, timeoutMs: number, taken: GidTaken): void {
    const peer = this.#neighbours.find((entry) => entry.address === address);
    if (peer !== undefined) taken(gidOfPort(peer));
    else this.#timers.after(msToPs(timeoutMs), () => taken(errnoNumbers.ETIMEDOUT));
  }

  findPath(cpu: Cpu, gid: Uint8Array, timeoutMs: number, taken: RouteTaken): void {
    this.#paths.ask(cpu, gidOfPort(this.#own), gid, timeoutMs, taken);
  }
}

function gidOfPort({ portGuid }: Neighbour): Uint8Array {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  view.setBigUint64(0, 0xfe80_0000_0000_0000n);
  view.setBigUint64(8, portGuid);
  return gid;
}
