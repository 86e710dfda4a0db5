/**
 * Network headers of packets to send: the GRH of InfiniBand, or the headers that precede the BTH with RoCE. A
 * datagram's record holds them, from its address vector or from software's own headers; those of a connection are built
 * from the QP's path.
 */
import { GRH_BYTES, packetBytesOf, roceRoute, roceRoutePlace } from '../../../../wire/index.ts';
import { type DatagramAddresses, type QpTable, UD_OPCODE_BASE } from '../../objects/index.ts';
import { buildGrh, setGrhLength } from './grh.ts';
import type { IbtaPacket } from './ibta-packet.ts';
import type { PortAddress, RoceTables } from './port-address.ts';
import { buildNetworkHeader, buildRoute, connectedRouteOf, setRouteLength } from './roce-route.ts';

export interface NetworkHeaders {
  /** Writes the header of `packet` to `at` of `bytes`. */
  fill(packet: IbtaPacket, bytes: Uint8Array, at: number): void;
}

/** Parts of the device that network headers are made of. */
export interface NetworkHeadersSetup {
  readonly qps: QpTable;
  readonly datagrams: DatagramAddresses;
  /** Addresses of the ports. */
  readonly addresses: readonly PortAddress[];
}

/** Network headers of a port of InfiniBand. */
export class GlobalRoutes implements NetworkHeaders {
  readonly #setup: NetworkHeadersSetup;

  constructor(setup: NetworkHeadersSetup) {
    this.#setup = setup;
  }

  fill(packet: IbtaPacket, bytes: Uint8Array, at: number): void {
    const { qps, datagrams, addresses } = this.#setup;
    const { opcode, payloadBytes, pair, request } = packet;
    if (opcode >= UD_OPCODE_BASE) {
      const from = request.number * GRH_BYTES;
      for (let byte = 0; byte < GRH_BYTES; byte++) bytes[at + byte] = datagrams.grh[from + byte]!;
    } else {
      buildGrh(qps.bytes, qps.pathOf(pair.slot), addresses[pair.portIndex]!, bytes, at);
    }
    setGrhLength(bytes, at, packetBytesOf(opcode | pair.serviceBits, payloadBytes, true));
  }
}

/** Network headers of a port of Ethernet. */
export class RoceRoutes implements NetworkHeaders {
  readonly #setup: NetworkHeadersSetup;
  readonly #tables: RoceTables;

  constructor(setup: NetworkHeadersSetup, tables: RoceTables) {
    this.#setup = setup;
    this.#tables = tables;
  }

  fill(packet: IbtaPacket, bytes: Uint8Array, at: number): void {
    const { qps, datagrams, addresses } = this.#setup;
    const { opcode, payloadBytes, pair, request } = packet;
    const place = roceRoutePlace(at);
    if (opcode >= UD_OPCODE_BASE) {
      const { number } = request;
      bytes.set(datagrams.grh.subarray(number * GRH_BYTES, (number + 1) * GRH_BYTES), at);
      bytes.set(
        datagrams.routes.subarray(number * roceRoute.sizeBytes, (number + 1) * roceRoute.sizeBytes),
        place,
      );
    } else {
      const parts = connectedRouteOf(qps, pair.slot, this.#tables);
      buildNetworkHeader(parts, addresses[pair.portIndex]!, bytes, at);
      buildRoute(parts, bytes, place);
    }
    setRouteLength(bytes, at, packetBytesOf(opcode | pair.serviceBits, payloadBytes, true));
  }
}
