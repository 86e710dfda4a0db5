/**
 * Network headers of packets to send: the GRH of InfiniBand, or the headers that precede the BTH with RoCE. A
 * datagram's record holds them, from its address vector or from software's own headers; those of a connection are built
 * from the QP's path.
 */
import { GRH_BYTES, packetBytesOf, roceRoute, roceRoutePlace } from '../../../../wire/index.ts';
import type { DatagramAddresses, QpTable } from '../../objects/index.ts';
import { buildGrh, setGrhLength } from './grh.ts';
import { type IbtaPacket, isDatagram, wireOpcodeOf } from './ibta-packet.ts';
import type { PortAddress, RoceTables } from './port-address.ts';
import {
  buildNetworkHeader,
  buildRoute,
  connectedRouteOf,
  priorityOf,
  type RoceRouteParts,
  setRouteLength,
  setTrafficClass,
  trafficClassIn,
  withPriority,
} from './roce-route.ts';

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
    const { payloadBytes, pair, request } = packet;
    if (isDatagram(packet)) {
      const from = request.number * GRH_BYTES;
      for (let byte = 0; byte < GRH_BYTES; byte++) bytes[at + byte] = datagrams.grh[from + byte]!;
    } else {
      buildGrh(qps.bytes, qps.pathOf(pair.slot), addresses[pair.portIndex]!, bytes, at);
    }
    setGrhLength(bytes, at, packetBytesOf(wireOpcodeOf(packet), payloadBytes, true));
  }
}

/** Traffic class and priority of connections' packets, of RoCE v2, where they are not those of the path. */
export interface TrafficClasses {
  trafficClassOf(packet: IbtaPacket, ofPath: number): number;
  priorityOf(packet: IbtaPacket, ofPath: number): number;
}

/** Network headers of a port of Ethernet. */
export class RoceRoutes implements NetworkHeaders {
  readonly #setup: NetworkHeadersSetup;
  readonly #tables: RoceTables;
  readonly #classes: TrafficClasses | undefined;

  constructor(setup: NetworkHeadersSetup, tables: RoceTables, classes: TrafficClasses | undefined) {
    this.#setup = setup;
    this.#tables = tables;
    this.#classes = classes;
  }

  fill(packet: IbtaPacket, bytes: Uint8Array, at: number): void {
    const { qps, datagrams, addresses } = this.#setup;
    const { payloadBytes, pair, request } = packet;
    const place = roceRoutePlace(at);
    if (isDatagram(packet)) {
      const { number } = request;
      bytes.set(datagrams.grh.subarray(number * GRH_BYTES, (number + 1) * GRH_BYTES), at);
      bytes.set(
        datagrams.routes.subarray(number * roceRoute.sizeBytes, (number + 1) * roceRoute.sizeBytes),
        place,
      );
    } else {
      const parts = connectedRouteOf(qps, pair.slot, this.#tables);
      buildNetworkHeader(parts, addresses[pair.portIndex]!, bytes, at);
      if (this.#classes === undefined || !parts.isRoutable) buildRoute(parts, bytes, place);
      else this.#classify(this.#classes, packet, parts, bytes, at);
    }
    setRouteLength(bytes, at, packetBytesOf(wireOpcodeOf(packet), payloadBytes, true));
  }

  /** The route, with the traffic class and the priority that congestion control gives the packet. */
  #classify(
    classes: TrafficClasses,
    packet: IbtaPacket,
    parts: RoceRouteParts,
    bytes: Uint8Array,
    at: number,
  ): void {
    setTrafficClass(bytes, at, classes.trafficClassOf(packet, trafficClassIn(bytes, at)));
    const priority = classes.priorityOf(packet, priorityOf(parts));
    buildRoute(withPriority(parts, priority), bytes, roceRoutePlace(at));
  }
}
