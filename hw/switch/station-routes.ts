/**
 * The ports by which a frame leaves: learned ones, those of the plan where a fabric has several paths, or a tree for everything else.
 *
 *     destination          has a route ── ports of all shortest paths, one of them by the hash of the flow
 *                          learned     ── the port by which it sent last
 *                          otherwise   ── flooded: ports of the tree, except the one by which the frame came
 *
 * Flooded frames follow one tree over all switches and never circle. Where the fabric is that tree, switches learn every station, as plain
 * bridges do. Where it has more links, a learned port would be wrong: frames of one station come by several ports. Then stations of the
 * plan have routes, as EVPN or TRILL would distribute, and a switch learns only other stations, only by ports of the tree.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';
import { flowHashOf } from './flow-hash.ts';
import { destinationMacOf, isGroupMac, isLinkLocalGroup, sourceMacOf, vlanOf } from './frame-fields.ts';
import { MacTable } from './mac-table.ts';
import type { StoredFrame } from './stored-frames.ts';

/** Reasons why a frame leaves by no port. */
export type RouteRefusal = 'noRoute' | 'ownPort' | 'linkLocal';

const PS_PER_SECOND = 1e12;

export class StationRoutes {
  readonly stations: MacTable;
  readonly #seed: number;
  /** Ports of all shortest paths to stations of the plan, from 1. */
  readonly #routes = new Map<number, readonly number[]>();
  #treePorts: readonly number[] = [];
  /** Frames to stations that were not known, and to groups. */
  floodedCount = 0;

  constructor(config: EthernetSwitchConfig, seed: number) {
    this.stations = new MacTable(config.macEntries, config.ageingSeconds * PS_PER_SECOND);
    this.#seed = seed;
  }

  /** Ports of the tree that reaches every host and switch once, from 1. */
  setTreePorts(ports: readonly number[]): void {
    this.#treePorts = ports;
  }

  /** Ports of all shortest paths to a station. */
  setRoute(mac: number, ports: readonly number[]): void {
    this.#routes.set(mac, ports);
  }

  /**
   * Learns from a frame that came by a port, from 1.
   */
  learn({ bytes }: StoredFrame, port: number, nowPs: Picoseconds): void {
    const source = sourceMacOf(bytes);
    if (isGroupMac(source) || this.#routes.has(source) || !this.#treePorts.includes(port)) return;
    this.stations.learn(vlanOf(bytes), source, port, nowPs);
  }

  /** Ports by which a frame leaves that came by `input`, from 1; or why it leaves by none. */
  portsOf(frame: StoredFrame, input: number, nowPs: Picoseconds): readonly number[] | RouteRefusal {
    const { bytes } = frame;
    const mac = destinationMacOf(bytes);
    if (isLinkLocalGroup(mac)) return 'linkLocal';
    if (isGroupMac(mac)) return this.#flooded(input);
    const route = this.#routes.get(mac);
    const port =
      route === undefined ? this.stations.portOf(vlanOf(bytes), mac, nowPs) : this.#chosen(route, frame);
    if (port === undefined) return this.#flooded(input);
    return port === input ? 'ownPort' : [port];
  }

  inspect(): BlockState {
    return { ...this.stations.inspect(), routes: [...this.#routes].map(([mac, ports]) => [mac, ...ports]) };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.stations.rebase(ps);
  }

  #chosen(ports: readonly number[], { bytes, frameBytes }: StoredFrame): number {
    return ports.length === 1 ? ports[0]! : ports[flowHashOf(bytes, frameBytes, this.#seed) % ports.length]!;
  }

  #flooded(input: number): readonly number[] | RouteRefusal {
    const ports = this.#treePorts.filter((port) => port !== input);
    if (ports.length === 0) return 'noRoute';
    this.floodedCount++;
    return ports;
  }
}
