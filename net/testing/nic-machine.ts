/**
 * Two hosts end to end, for specs: real hosts, root complexes, PCIe links, hw/nic and an Ethernet cable, six logical processes,
 * with the kernel path of net/ above: a small version of the machine that a plan describes.
 */
import { defaultsOf } from '../../base/parameter.ts';
import {
  type CoreThread,
  configAccessOf,
  driverPlatformOf,
  Host,
  hostConfigOf,
  hostParameters,
  type ProgramContext,
} from '../../host/index.ts';
import { dmaParameters, TrafficClass, trafficClassCount } from '../../hw/dma/index.ts';
import { macAddressOf, Nic, nicFunctionParameters, nicParameters } from '../../hw/nic/index.ts';
import {
  endpointPortParameters,
  enumerateFunction,
  enumerationParameters,
  linkParameters,
  PcieLinkPort,
  RootComplex,
  rootComplexParameters,
  rootPortParameters,
} from '../../hw/pcie/index.ts';
import {
  ChannelReader,
  ChannelWriter,
  channelBufferBytes,
  LogicalProcess,
  SingleRunner,
} from '../../sim/index.ts';
import { type EthernetConfig, ethernetChannelBytes, ethernetParameters, withTag } from '../../wire/index.ts';
import { Network, netConfigOf } from '../network.ts';
import { type NetDriverConfig, type NetStackConfig, netParameters } from '../parameters.ts';
import type { SocketCalls } from '../socket/index.ts';
import { addressesOf } from './machine.ts';

const functionId = 0x0100;
const pcieChannel = (): SharedArrayBuffer => new SharedArrayBuffer(channelBufferBytes(2 ** 20));

export interface NicMachineOptions {
  readonly ethernet?: Partial<EthernetConfig>;
  readonly driver?: Partial<NetDriverConfig>;
  readonly stack?: Partial<NetStackConfig>;
  readonly seed?: number;
  /** True if the hosts do not know each other's MACs. */
  readonly asksForNeighbours?: boolean;
}

export class NicNode {
  readonly host: Host;
  readonly hostLp: LogicalProcess;
  readonly nic: Nic;
  network: Network | undefined;
  /** Free frames of the host before the driver was probed. */
  freeFramesBefore = 0;
  /** Bus address of BAR0. */
  barAddress = 0;

  constructor(
    index: number,
    wire: readonly SharedArrayBuffer[],
    ethernet: EthernetConfig,
    options: NicMachineOptions,
  ) {
    this.hostLp = new LogicalProcess(`host${index}`);
    const nicLp = new LogicalProcess(`nic${index}`);
    const link = defaultsOf(linkParameters);
    const [rootPort, endpoint] = [defaultsOf(rootPortParameters), defaultsOf(endpointPortParameters)];
    const [up, down] = [pcieChannel(), pcieChannel()];
    this.host = new Host({
      logicalProcess: this.hostLp,
      config: hostConfigOf({ memory: { ...defaultsOf(hostParameters.memory), sizeMib: 128 } }),
      busMap: { trafficClassAt: () => TrafficClass.register },
      connect: (memory, interrupts) => {
        const rootComplex = new RootComplex({
          lp: this.hostLp,
          config: defaultsOf(rootComplexParameters),
          end: rootPort,
          port: new PcieLinkPort({
            lp: this.hostLp,
            link,
            end: rootPort,
            peer: endpoint,
            writer: new ChannelWriter(down),
            reader: new ChannelReader(up),
            trafficClassCount,
          }),
          memory,
          interrupts,
          coreCount: 4,
          trafficClasses: { register: TrafficClass.register, config: TrafficClass.config },
        });
        return (core) => rootComplex.corePort(core);
      },
    });
    this.nic = new Nic({
      lp: nicLp,
      config: defaultsOf(nicParameters),
      dma: defaultsOf(dmaParameters),
      pcieFunction: defaultsOf(nicFunctionParameters),
      linkIdentity: link,
      link,
      linkEnd: endpoint,
      linkPeer: rootPort,
      ethernet,
      pcieWriter: new ChannelWriter(up),
      pcieReader: new ChannelReader(down),
      wireWriter: new ChannelWriter(wire[0]!),
      wireReader: new ChannelReader(wire[1]!),
      seed: options.seed ?? 1,
      macAddress: macAddressOf(index),
    });
    this.#boot(index, options);
  }

  #boot(index: number, options: NicMachineOptions): void {
    const { host, hostLp } = this;
    hostLp.addMember();
    host.spawn('boot', async (cpu) => {
      const enumeration = defaultsOf(enumerationParameters);
      const found = await enumerateFunction(configAccessOf(cpu), functionId, enumeration, 'memory');
      const platform = {
        ...driverPlatformOf(host, functionId, found!.bars),
        costs: {
          copyFixed: host.config.cost.copyFixed,
          copyBytesPerCycle: host.config.cost.copyBytesPerCycle,
        },
        startTimer: (delayPs: number, due: () => void) =>
          void hostLp.queue.schedule(hostLp.nowPs + delayPs, hostLp.queue.addHandler(due)),
      };
      const network = new Network(
        platform,
        netConfigOf({
          driver: { ...defaultsOf(netParameters.driver), ...options.driver },
          stack: { ...defaultsOf(netParameters.stack), ...options.stack },
        }),
        addressesOf(
          index,
          options.asksForNeighbours === true ? undefined : Uint8Array.from(macAddressOf(1 - index)),
        ),
      );
      this.barAddress = found!.bars[0]!.address;
      this.freeFramesBefore = host.frames.freeCount;
      await network.probe(cpu);
      await cpu.settle();
      this.network = network;
      hostLp.markEnded();
    });
  }
}

export class NicMachine {
  readonly nodes: readonly NicNode[];
  readonly #runner: SingleRunner;

  constructor(options: NicMachineOptions = {}) {
    const ethernet = withTag({ ...defaultsOf(ethernetParameters), ...options.ethernet });
    const wires = [0, 1].map(() => new SharedArrayBuffer(ethernetChannelBytes(ethernet)));
    this.nodes = [0, 1].map((index) => {
      const wire = index === 0 ? wires : [...wires].reverse();
      return new NicNode(index, wire, ethernet, options);
    });
    this.#runner = new SingleRunner(this.nodes.flatMap(({ hostLp, nic }) => [hostLp, nic.lp]));
  }

  run(
    node: number,
    name: string,
    body: (context: ProgramContext, calls: SocketCalls) => Promise<void>,
    core = 0,
  ): void {
    const at = this.nodes[node]!;
    at.host.runProgram(name, core, async (context) => {
      while (at.network === undefined) await context.cpu.sleep(10e6);
      const calls = at.network.open(context.memory);
      context.onExit((cpu) => calls.exit(cpu));
      await body(context, calls);
    });
  }

  /** Runs a thread of a host's kernel until it ends. */
  async kernel(node: number, body: (cpu: CoreThread) => Promise<void>): Promise<void> {
    const { host, hostLp } = this.nodes[node]!;
    hostLp.addMember();
    host.spawn('test', async (cpu) => {
      await body(cpu);
      await cpu.settle();
      hostLp.markEnded();
    });
    await this.toEnd(Number.POSITIVE_INFINITY);
  }

  async toEnd(limitPs = 20e12): Promise<void> {
    const { reason } = await this.#runner.runUntilEnded(1, limitPs);
    if (reason !== 'ended') throw new Error('the programs have not ended');
  }
}
