/**
 * A transport: the protocol by which QPs of this device exchange messages with their peers, e.g. IBTA over InfiniBand or RoCE. It makes
 * its own parts and blocks, once for each device; the engines reach them by their roles.
 */
import type { BlockAccount, ClockDomain, LogicalProcess, Wires } from '../../../sim/index.ts';
import type { CompletionWriter } from '../completion/index.ts';
import type { CostAttribution } from '../costs/index.ts';
import type { FrameReceiver, FrameTransmitter, ReceiveTurns } from '../frames/index.ts';
import type { KeyUnit } from '../keys/index.ts';
import type { QueuePairErrors, RequestEnds } from '../lifecycle/index.ts';
import type {
  ContextCache,
  ContextUser,
  DmaReads,
  DmaWrites,
  PageFaults,
  Translator,
} from '../memory/index.ts';
import type { CqTable, QpTable, SendRecords, SrqTable } from '../objects/index.ts';
import type { PacketQueue, PacketSlot, ReadUnit } from '../packets/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type {
  PayloadWriter,
  ReceiveBuffers,
  ReceiveScatter,
  ReceiveWqeFetch,
} from '../receive-queue/index.ts';
import type { RequestCompletion } from '../requester/index.ts';
import type { SendScheduler } from '../send-queue/index.ts';
import type { DiagnosticCounters, ViolationCounters } from '../statistics/index.ts';
import type { ConnectionStates } from './connection-states.ts';
import type { OutboundEnd, PacketReceiver, ResponseSide } from './ends.ts';
import type { RequestLifecycle, RequestTransport } from './request-transport.ts';

/** The device around a transport when its parts are made. */
export interface TransportSite {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly qps: QpTable;
  readonly records: SendRecords;
  /** Offset of new bytes of the HCA's memory, aligned to 64. */
  readonly allocateSram: (lengthBytes: number) => number;
  /** Room of a slot of the request packets: for one payload, or for one frame where the port is of Ethernet. */
  readonly requestSlotBytes: number;
  /** Undefined on a port of InfiniBand. */
  readonly ethernet: EthernetAttachment | undefined;
  readonly violations: ViolationCounters;
}

/** Parts that the engines use before the transport's blocks are made. */
export interface TransportParts {
  /** Packets of requests, whose slots are the transport's. */
  readonly requestPackets: PacketQueue;
  /** Received packets, until their payload has left for memory. */
  readonly receiveBuffers: ReceiveBuffers;
  /** Names under which the same buffers hold the frames of rings, where the port carries both; undefined: their slots. */
  readonly frameNames: { frameName(slot: number): number } | undefined;
}

/** Parts of the device that blocks of a transport may use. Each block declares which. */
export interface EngineParts {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly allocateSram: (lengthBytes: number) => number;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly records: SendRecords;
  readonly readUnit: ReadUnit;
  readonly ethernet: EthernetAttachment | undefined;
  /** Undefined unless the port carries frames of rings and packets. */
  readonly receiveTurns: ReceiveTurns | undefined;
  readonly violations: ViolationCounters;
  readonly diagnostics: DiagnosticCounters;
  readonly costs: CostAttribution | undefined;
}

/** The transport's blocks as the engines call them. */
export interface TransportRoles {
  readonly connections: ConnectionStates;
  readonly requestTransport: RequestTransport & RequestLifecycle;
  readonly outbound: OutboundEnd;
  readonly inbound: PacketReceiver;
  readonly responses: ResponseSide;
  /** Accounts of the transport's other blocks. */
  readonly otherAccounts: readonly BlockAccount[];
  /** Takes frames from an Ethernet port, and hands those of rings to the frame receiver. */
  readonly frameSink: { frameArrived(slot: number): void };
}

/** The engines as the transport's blocks call them. */
export interface EngineBlocks {
  /** Owner of the queue of request packets. */
  readonly requests: {
    /** A slot of the queue became free. */
    slotFreed(cycle: number): void;
    /** A request packet was handed to the wire port. */
    requestSent(packet: PacketSlot, cycle: number): void;
  };
  readonly scheduler: SendScheduler;
  readonly completion: RequestCompletion;
  readonly completions: CompletionWriter;
  readonly ends: RequestEnds;
  readonly errors: QueuePairErrors;
  readonly keys: KeyUnit;
  readonly receives: ReceiveWqeFetch;
  readonly scatter: ReceiveScatter;
  readonly writer: PayloadWriter;
  readonly frameTransmitter: FrameTransmitter;
  readonly frameReceiver: FrameReceiver;
}

/**
 * @typeParam Parts as {@link makeParts} makes them
 * @typeParam Blocks by name; a reset visits them from the last to the first
 */
export interface Transport<Parts extends TransportParts = TransportParts, Blocks extends object = object> {
  makeParts(site: TransportSite): Parts;
  makeBlocks(parts: EngineParts & Parts): Blocks;
  rolesOf(blocks: Blocks): TransportRoles;
  /** The neighbours of each block. */
  wires(blocks: Blocks, engines: EngineBlocks): Wires<Blocks>;
}
