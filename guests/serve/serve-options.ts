/** Options of a served machine, and their checks. */
import { ConfigurationError } from '../../base/index.ts';
import { type AnalysisOptions, checkCapture, checkCrossing } from '../../machine/analysis/index.ts';
import {
  checkedFaults,
  checkMark,
  type Fault,
  type FaultPlan,
  type HcaRoce,
} from '../../machine/faults/index.ts';
import { checkLinkLayer, configuredOf, type JsonValue, type ProgramModule } from '../../machine/index.ts';
import { configurationOf, type MachineConfig, type ParameterValues } from '../../machine/profile/index.ts';
import {
  checkedTopology,
  hostsOf,
  hostsWith,
  linkBetween,
  type Topology,
  type TopologyEntry,
} from '../../machine/topology/index.ts';
import {
  type Cabling,
  checkFabricPeer,
  checkHcaCount,
  checkPeer,
  checkStranger,
  strangerNode,
} from './served-plan.ts';

/** A simulated host at the other end of the cable, and its program. */
export interface PeerOptions {
  /** A function of a module: it runs in the serving thread. */
  readonly run: ProgramModule;
  /** Default `peer`. */
  readonly name?: string;
  readonly args?: JsonValue;
  /** Ports of this computer that QEMU forwards to the guest, by the guest's own: the program can connect to these. */
  readonly guestPorts?: Readonly<Record<number, number>>;
}

export interface ServeOptions {
  /** Path of the UNIX socket; for two HCAs, the paths with `.0` and `.1` appended. */
  readonly socket: string;
  /** HCAs, each on its own socket: 1 (default) or 2, on a topology at most `servedHcasMax`. */
  readonly hcas?: number;
  /** A cable between port 1 of both HCAs. */
  readonly cable?: boolean;
  /**
   * Path of a UNIX socket that is the other end of the cable of the single HCA, an Ethernet port: QEMU's `-netdev stream`
   * connects the network card of another guest there. Left out: no such socket.
   */
  readonly wire?: string;
  /**
   * Hosts and switches: the HCAs are in its first hosts, the others are simulated. Left out: none. For `hca linux` alone.
   */
  readonly topology?: TopologyEntry;
  /** Whether a port without a cable has a loopback plug (default); otherwise its link stays down. */
  readonly loopbackPlug?: boolean;
  /** {@link servedProfile} if left out. */
  readonly profile?: string;
  readonly set?: ParameterValues;
  readonly seed?: number;
  readonly faults?: FaultPlan;
  /** Like MachineOptions.shortcuts: false disables measures that only make the emulation faster. */
  readonly shortcuts?: boolean;
  /** Simulated time per wall time while the devices are idle: 1 if left out. */
  readonly timeScale?: number;
  /** Ends when the last guest has disconnected, after at least one was connected. */
  readonly once?: boolean;
  /** A simulated host cabled to the single served HCA; left out: none. */
  readonly peer?: PeerOptions;
  /** Events to trace, and whether the guests' drivers are checked against the rules; nothing if left out. */
  readonly analysis?: AnalysisOptions;
}

/** The simulated host's program: plain data. */
export interface PeerOrder {
  readonly url: string;
  readonly exportName: string;
  readonly name: string;
  readonly args: JsonValue;
}

/** Options of devices, whatever connects their guests. */
export type DevicesOptions = Omit<ServeOptions, 'socket' | 'timeScale' | 'once'>;

/** Complete and checked. */
export interface DevicesOrder {
  readonly config: MachineConfig;
  readonly cabling: Cabling;
  /** Path of the socket that is the other end of the cable. */
  readonly wire: string | undefined;
  readonly faults: readonly Fault[];
  readonly shortcuts: boolean;
  /** The fabric, if there is one. */
  readonly fabric: Topology | undefined;
  readonly peer: PeerOrder | undefined;
  readonly analysis: AnalysisOptions | undefined;
}

/** Complete and checked: plain data, for the serving thread. */
export interface ServeOrder extends DevicesOrder {
  readonly sockets: readonly string[];
  readonly timeScale: number;
  readonly isOnce: boolean;
}

/**
 * The default of serving: the card of the default profile, on a host that accepts payloads of 512 bytes. No host is measured
 * here, and fewer TLPs for the same bytes need less computation: docs/how-to/serve.md explains why.
 */
export const servedProfile = 'connectx3-mps512';

const portMax = 65_535;
const timeScaleRange = [1e-6, 1e6] as const;

/** @throws ConfigurationError naming the option */
export function serveOrderOf(options: ServeOptions): ServeOrder {
  const { socket, hcas = 1, wire, timeScale = 1 } = options;
  if (socket === '') throw new ConfigurationError('socket', socket, 'a path');
  if (wire === socket) throw new ConfigurationError('wire', wire, 'a path of its own');
  if (!(timeScale >= timeScaleRange[0] && timeScale <= timeScaleRange[1]))
    throw new ConfigurationError('time scale', timeScale, `a number from ${timeScaleRange.join(' to ')}`);
  return {
    sockets: hcas === 1 ? [socket] : Array.from({ length: hcas }, (_, node) => `${socket}.${node}`),
    ...devicesOrderOf(options),
    timeScale,
    isOnce: options.once ?? false,
  };
}

/** Devices by their first port, which has a cable or a plug. */
const withPlugs = (nodeCount: number): Topology =>
  hostsWith(
    nodeCount,
    Array.from({ length: nodeCount }, (_, node) => linkBetween(node, node)),
  );

/** @throws ConfigurationError naming the option */
export function devicesOrderOf(options: DevicesOptions): DevicesOrder {
  const { hcas = 1, cable = false, wire } = options;
  const fabric = fabricOf(options);
  checkHcaCount(hcas, fabric);
  const peer = peerOrderOf(options);
  if (cable && hcas !== 2 && peer === undefined)
    throw new ConfigurationError('cable', `with ${hcas} HCA`, 'an option for two HCAs');
  checkCrossing(options.analysis, 'a served device');
  const nodeCount = fabric === undefined ? (peer === undefined ? hcas : 2) : hostsOf(fabric).length;
  checkCapture(options.analysis, fabric ?? withPlugs(nodeCount));
  const seed = options.seed === undefined ? {} : { 'machine.seed': options.seed };
  const set = { ...options.set, ...seed };
  const profile = options.profile ?? servedProfile;
  const config =
    fabric === undefined
      ? configurationOf({ profile, set })
      : configuredOf({ profile, set, topology: fabric }).config;
  const { linkLayer, roce, transport } = config.hca.capability;
  const faultedCount = wire === undefined ? nodeCount : strangerNode + 1;
  const faults = checkedFaults(options.faults ?? [], faultedCount, fabric, transport);
  const cabling = cablingOf(options);
  if (transport === 'iwarp' && peer === undefined)
    throw new ConfigurationError(
      'hca.capability.transport',
      transport,
      'ibta for guests without a peer: their drivers of this card know no iWARP, a simulated host at the other end does',
    );
  if (fabric !== undefined) checkLinkLayer(config);
  if (linkLayer === 'ethernet') checkEthernet(faults, roce);
  else if (roce !== 'none')
    throw new ConfigurationError('hca.capability.roce', roce, 'none where ports are of InfiniBand');
  if (peer !== undefined && fabric !== undefined) checkFabricPeer({ config, hcaCount: hcas }, fabric);
  else if (peer !== undefined) checkPeer({ config, hcaCount: hcas, cabling });
  checkAdapter(options, config);
  if (wire !== undefined) {
    checkWire(options, config, hcas);
    checkStrangerFaults(faults);
  }
  return {
    config,
    cabling,
    wire,
    faults,
    shortcuts: options.shortcuts ?? true,
    fabric,
    peer,
    analysis: options.analysis,
  };
}

/** The fabric's hosts and switches. @throws ConfigurationError for other cables beside it */
function fabricOf({ topology, cable, wire }: DevicesOptions): Topology | undefined {
  if (topology === undefined) return undefined;
  const fabric = checkedTopology(topology);
  for (const [name, value] of Object.entries({ cable: cable === true ? true : undefined, wire }))
    if (value !== undefined) throw new ConfigurationError(name, value, 'left out with a topology');
  return fabric;
}

/** @throws ConfigurationError for a NIC without a simulated host, and for ports to one that the guest reaches by its own network */
function checkAdapter({ peer }: DevicesOptions, { machine: { adapter } }: MachineConfig): void {
  if (adapter === 'hca') return;
  if (peer === undefined)
    throw new ConfigurationError(
      'machine.adapter',
      adapter,
      'hca, unless a simulated host is beside the guest (peer)',
    );
  for (const port of Object.keys(peer.guestPorts ?? {}))
    throw new ConfigurationError(
      'peer.guestPorts',
      port,
      'left out with machine.adapter=nic: the two reach each other over the cable',
    );
}

function cablingOf({ cable = false, peer, wire, topology, loopbackPlug = true }: DevicesOptions): Cabling {
  if (topology !== undefined) return 'fabric';
  if (wire !== undefined) return 'socket';
  if (cable || peer !== undefined) return 'cable';
  return loopbackPlug ? 'loopback' : 'open';
}

/** @throws ConfigurationError for another use of the port, and for a link without frames */
function checkWire(
  { wire, cable, peer, loopbackPlug }: DevicesOptions,
  config: MachineConfig,
  hcaCount: number,
): void {
  if (wire === '') throw new ConfigurationError('wire', wire, 'a path of its own');
  if (cable === true) throw new ConfigurationError('wire', wire, 'left out with a cable between the HCAs');
  if (peer !== undefined)
    throw new ConfigurationError('wire', wire, 'left out beside a peer: its cable is in the port');
  if (loopbackPlug === false)
    throw new ConfigurationError('loopbackPlug', false, 'left out with wire: its cable is in the port');
  checkStranger({ config, hcaCount });
}

/** @throws ConfigurationError for faults of a third-party endpoint that do not concern what it sends */
function checkStrangerFaults(faults: readonly Fault[]): void {
  for (const fault of faults)
    if (fault.node === strangerNode && fault.kind !== 'packet')
      throw new ConfigurationError(
        'node',
        fault.node,
        `0 for a fault of ${fault.kind}: node 1 is a stranger`,
      );
}

/** @throws ConfigurationError for faults that an Ethernet cable does not have */
function checkEthernet(faults: readonly Fault[], roce: HcaRoce): void {
  for (const fault of faults)
    if (fault.kind === 'packet' && fault.packet === 'congested') checkMark(fault, roce);
}

/** @throws ConfigurationError for options that do not fit next to a simulated host */
function peerOrderOf({ peer, loopbackPlug }: DevicesOptions): PeerOrder | undefined {
  if (peer === undefined) return undefined;
  const { run, name = 'peer', args = null } = peer;
  if (typeof run !== 'object' || run === null || run.url === undefined)
    throw new ConfigurationError(
      'peer.run',
      run,
      'a module ({ url, exportName }): it runs in another thread',
    );
  if (loopbackPlug === false)
    throw new ConfigurationError('loopbackPlug', false, 'left out beside a peer: its cable is in the port');
  for (const [guestPort, port] of Object.entries(peer.guestPorts ?? {}))
    for (const one of [Number(guestPort), port])
      if (!Number.isInteger(one) || one < 1 || one > portMax)
        throw new ConfigurationError('peer.guestPorts', one, `ports from 1 to ${portMax}`);
  return { url: String(run.url), exportName: run.exportName ?? 'default', name, args };
}
