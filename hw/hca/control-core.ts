/**
 * What the blocks of the control side share: time, configuration, memories, tables, the DMA engines. It is made once, before the
 * blocks. Which blocks a block calls stands in the table of wires (control-blocks.ts).
 */
import type { ClockDomain } from '../../sim/index.ts';
import type { EthernetConfig } from '../../wire/index.ts';
import type { CapabilityConfig, ContextTables, ControlConfig } from './commands/index.ts';
import { EqTable } from './events/index.ts';
import type { DmaReads, DmaWrites, IcmMap, InterruptPort, SramAllocator } from './memory/index.ts';
import type { FrameErrors, LinkStateSource, LinkTraffic, PauseControl } from './port/index.ts';
import { ProtocolViolations } from './statistics/index.ts';

/** The cable of an Ethernet port as the control side sees it. */
interface EthernetCable {
  readonly link: LinkStateSource;
  readonly errors: FrameErrors;
  readonly flowControl: PauseControl;
  /** What QUERY_PORT reports of it. */
  readonly config: Pick<EthernetConfig, 'mtuBytes' | 'gigabitsPerSecond'>;
}

export interface ControlSideSetup {
  readonly domain: ClockDomain;
  /** Identity of the chip. */
  readonly hardwareId: number;
  readonly icm: IcmMap;
  readonly interrupts: InterruptPort;
  readonly reads: DmaReads;
  readonly writes: DmaWrites;
  readonly sram: SramAllocator;
  readonly tables: ContextTables;
  /** The cable of port 1. */
  readonly link: (LinkStateSource & LinkTraffic) | undefined;
  /** The same of Ethernet, where that is the ports' link layer. */
  readonly ethernet?: EthernetCable | undefined;
  readonly config: ControlConfig;
  readonly capabilities: CapabilityConfig;
  /** Which node this is, from 0: its GUIDs and LID come from it. */
  readonly nodeIndex: number;
  /** The nodes of the subnet, this one among them. */
  readonly subnetNodes: readonly number[];
}

export interface ControlCore extends ControlSideSetup {
  readonly eqs: EqTable;
  readonly violations: ProtocolViolations;
}

export function makeControlCore(setup: ControlSideSetup): ControlCore {
  const { capabilities, domain } = setup;
  return {
    ...setup,
    eqs: new EqTable(2 ** capabilities.logMaxEqs, domain.clock.frequencyMHz),
    violations: new ProtocolViolations(),
  };
}
