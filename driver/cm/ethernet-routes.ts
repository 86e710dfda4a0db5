/** Routes of a port of Ethernet: its own interface finds the MACs of neighbours (../network), and a path is a MAC. */
import { textOfGid } from '../address-text.ts';
import type { EthernetPort } from '../ethernet-port.ts';
import { gidOfMac } from '../gid.ts';
import type { Cpu, Neighbour } from '../platform.ts';
import { gidOfAddress } from './internet-address.ts';
import type { RouteTaken } from './path-queries.ts';
import type { GidTaken, Routes } from './routes.ts';

/** Linux gives every path on Ethernet this lifetime: CMA_IBOE_PACKET_LIFETIME; its captured REQs contain it (reference/wire). */
const packetLifeTime = 18;
/** ip_default_ttl. */
const routedHopLimit = 64;
const serviceLevel = 0;

export class EthernetRoutes implements Routes {
  readonly ownAddresses: readonly string[];
  readonly #port: EthernetPort;
  /** Code of the verbs. */
  readonly #mtu: number;
  readonly #rate: number;

  private constructor(port: EthernetPort, own: Neighbour, mtu: number, rate: number) {
    this.#port = port;
    this.ownAddresses = [own.address, textOfGid(gidOfMac(port.mac))];
    this.#mtu = mtu;
    this.#rate = rate;
  }

  static async open(cpu: Cpu, port: EthernetPort, own: Neighbour): Promise<EthernetRoutes> {
    const { activeMtu } = await port.query(cpu);
    return new EthernetRoutes(port, own, activeMtu, await port.pathRate(cpu));
  }

  findGid(cpu: Cpu, address: string, timeoutMs: number, taken: GidTaken): void {
    const gid = gidOfAddress(address);
    this.#port.interface.resolve(cpu, gid, timeoutMs, (outcome) =>
      taken(typeof outcome === 'number' ? outcome : gid),
    );
  }

  findPath(cpu: Cpu, gid: Uint8Array, timeoutMs: number, taken: RouteTaken): void {
    const port = this.#port;
    const sgidIndex = port.gidIndexTo(gid);
    port.interface.resolve(cpu, gid, timeoutMs, (mac) => {
      if (typeof mac === 'number') return taken(mac);
      taken({
        local: { lid: 0, gid: port.gidAt(sgidIndex) },
        remote: { lid: 0, gid },
        serviceLevel,
        mtu: this.#mtu,
        rate: this.#rate,
        packetLifeTime,
        roce: { sgidIndex, hopLimit: routedHopLimit, mac },
      });
    });
  }
}
