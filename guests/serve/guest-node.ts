/**
 * The logical process of a slot that a real guest uses: root complex and link as in a simulated host, but no simulated host.
 * The guest's CPU uses core port 0; {@link GuestMemorySwitch} and {@link InterruptLines} give access to its memory and
 * interrupt descriptors.
 */
import { TrafficClass, trafficClassCount } from '../../hw/dma/index.ts';
import { type CorePort, PcieLinkPort, RootComplex, type SharedDevice } from '../../hw/pcie/index.ts';
import { FaultLog, faultsOf, InterruptGate, injectRootComplexFaults } from '../../machine/faults/index.ts';
import { channelKey, ExchangeEnd, hcaName, type ValueTaken } from '../../machine/index.ts';
import { type Stream, slotStream } from '../../machine/timeline/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import { GuestMemorySwitch } from './guest-memory-switch.ts';
import { InterruptLines, type RaiseInterrupt } from './interrupt-lines.ts';
import { exchangeChannelsOf, guestName, type ServedPlan } from './served-plan.ts';

export class GuestNode {
  readonly node: number;
  readonly lp: LogicalProcess;
  readonly port: PcieLinkPort;
  readonly rootComplex: RootComplex;
  readonly memory = new GuestMemorySwitch();
  readonly interrupts: InterruptLines;
  readonly interruptGate: InterruptGate;
  readonly faultLog: FaultLog;
  /** Entry of the guest's accesses. */
  readonly core: CorePort;
  /** Timeline records of the link to the guest; undefined unless the plan requests a timeline. */
  readonly stream: Stream | undefined;
  /** The exchange with the simulated host, if any. */
  readonly exchange: ExchangeEnd | undefined;

  /** @param taken receives values that the simulated host's program puts into the exchange */
  constructor(
    plan: ServedPlan,
    node: number,
    raise: RaiseInterrupt,
    device: SharedDevice | undefined,
    taken: ValueTaken,
  ) {
    const { config, channels, faults, shortcuts, analysis } = plan;
    const { link, rootPort, endpointPort, rootComplex, function: pcieFunction } = config.pcie;
    this.node = node;
    this.lp = new LogicalProcess(guestName(node), undefined, shortcuts);
    const reader = new ChannelReader(channels[channelKey(hcaName(node), guestName(node))]!);
    this.port = new PcieLinkPort({
      lp: this.lp,
      link,
      end: rootPort,
      peer: endpointPort,
      writer: new ChannelWriter(channels[channelKey(guestName(node), hcaName(node))]!),
      reader,
      trafficClassCount,
    });
    this.interrupts = new InterruptLines(
      pcieFunction.msixVectorCount,
      rootComplex.messageWindowAddress,
      raise,
    );
    this.interruptGate = new InterruptGate(this.lp, this.interrupts);
    this.rootComplex = new RootComplex({
      lp: this.lp,
      config: rootComplex,
      end: rootPort,
      port: this.port,
      memory: this.memory,
      interrupts: this.interruptGate,
      coreCount: 1,
      trafficClasses: { register: TrafficClass.register, config: TrafficClass.config },
      device,
    });
    this.core = this.rootComplex.corePort(0);
    this.faultLog = new FaultLog(faults);
    this.interruptGate.inject(faultsOf(faults, node, 'interrupt'), this.faultLog);
    injectRootComplexFaults(faults, node, this.rootComplex, this.faultLog);
    if (plan.peer !== undefined) {
      const { inbound, outbound } = exchangeChannelsOf(plan);
      this.exchange = new ExchangeEnd(this.lp, config, inbound, outbound, taken);
    }
    this.stream = slotStream(analysis?.timeline, this.lp, reader, config);
  }
}
