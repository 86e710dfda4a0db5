/**
 * A device's end of its slot: the link port, the function, both DMA engines and the sender of interrupt messages, wired by one
 * table. The HCA and the network card have one each, and are its target.
 *
 *     link ═ linkPort ── requests ──► pcieFunction ── BAR accesses ──► target
 *               │ completions ──► dmaRead ── done ──► requesters         │ interrupts
 *               ◄── memory writes ── dmaWrite ◄── requesters, messageSender ◄┘
 */
import type { ChannelReader, ChannelWriter, ClockDomain, LogicalProcess, Wires } from '../../sim/index.ts';
import { connectBlocks } from '../../sim/index.ts';
import {
  type BarTarget,
  type FunctionConfig,
  type LinkConfig,
  type LinkEndConfig,
  type LinkIdentity,
  type PayloadReferences,
  PcieFunction,
  PcieLinkPort,
  ZeroCopyWriter,
} from '../pcie/index.ts';
import { DmaMessageSender } from './dma-message-sender.ts';
import { DmaReadEngine } from './dma-read-engine.ts';
import { DmaWriteEngine } from './dma-write-engine.ts';
import type { DmaConfig } from './parameters.ts';
import { TrafficClass, trafficClassCount } from './traffic-class.ts';

/** The slot of a device, and the configuration of the device's end of it. */
export interface SlotSetup {
  readonly dma: DmaConfig;
  readonly pcieFunction: FunctionConfig;
  readonly linkIdentity: LinkIdentity;
  readonly link: LinkConfig;
  readonly linkEnd: LinkEndConfig;
  readonly linkPeer: LinkEndConfig;
  readonly pcieWriter: ChannelWriter;
  readonly pcieReader: ChannelReader;
}

export interface BusInterfaceSetup extends SlotSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  /** On-chip memory into which reads put their bytes. */
  readonly sram: Uint8Array;
  /** Limit of held interrupt messages. */
  readonly messageFifoDepth: number;
  /** Whether a host in the same thread may place bytes of reads early; left out: false. */
  readonly hasEarlyPlacement?: boolean;
  /** References by which writes carry payload of the device's channel; left out: the writes carry it themselves. */
  readonly references?: PayloadReferences | undefined;
  /** See FunctionOptions. */
  readonly gatewayAddress?: number;
}

/** The blocks, in the order in which their stages are added. */
function makeBlocks(setup: BusInterfaceSetup) {
  const { lp, domain, link, sram, references, hasEarlyPlacement = false } = setup;
  const linkPort = new PcieLinkPort({
    lp,
    link,
    end: setup.linkEnd,
    peer: setup.linkPeer,
    writer: setup.pcieWriter,
    reader: setup.pcieReader,
    trafficClassCount,
  });
  const pcieFunction = new PcieFunction({
    process: lp,
    domain,
    port: linkPort,
    config: setup.pcieFunction,
    link: setup.linkIdentity,
    messageTrafficClass: TrafficClass.message,
    gatewayAddress: setup.gatewayAddress,
  });
  const engine = { lp, domain, config: setup.dma };
  const dmaRead = new DmaReadEngine({ ...engine, link: linkPort, sram, hasEarlyPlacement });
  const writer = references === undefined ? linkPort : new ZeroCopyWriter(linkPort, references);
  const dmaWrite = new DmaWriteEngine({ ...engine, link: writer });
  const messageSender = new DmaMessageSender(dmaWrite, setup.messageFifoDepth);
  return { linkPort, pcieFunction, dmaRead, dmaWrite, messageSender };
}

export type BusBlocks = ReturnType<typeof makeBlocks>;

export interface BusInterfacePorts {
  /** The device core that serves the BARs. */
  readonly target: BarTarget;
}

/** The wires of the blocks. */
export function busWires(b: BusBlocks & BusInterfacePorts): Wires<BusBlocks> {
  const { ingress, egress } = b.pcieFunction.blocks;
  return {
    linkPort: {
      receiver: ingress,
      completionRuns: b.dmaRead.completionRuns,
      posted: [egress, b.dmaWrite],
      nonPosted: [b.dmaRead],
      completion: [egress],
    },
    pcieFunction: { target: b.target, messageSender: b.messageSender, reads: b.dmaRead },
    dmaRead: { pcieFunction: b.pcieFunction },
    dmaWrite: { pcieFunction: b.pcieFunction },
  };
}

export class BusInterface {
  readonly blocks: BusBlocks;

  constructor(setup: BusInterfaceSetup) {
    this.blocks = makeBlocks(setup);
  }

  connect(ports: BusInterfacePorts): void {
    connectBlocks(this.blocks, busWires({ ...this.blocks, ...ports }));
  }
}
