/**
 * Contexts of QPs, CQs, SRQs and EQs in the format of a card. Commands fill contexts. The engines work on the rows of
 * the tables, which a format loads from a context; fields that change with every packet exist in the rows only, and are
 * written into a context before it is read.
 */
import type { EventQueueProgress, EventQueueSetting } from '../events/index.ts';
import type {
  CompletionQueue,
  Cqn,
  QueuePair,
  SharedQueueProgress,
  SharedQueueSetting,
} from '../objects/index.ts';
import type { ConnectionStates } from '../transport/index.ts';

interface ContextFormat {
  /** Bytes of a context in host memory. */
  readonly contextBytes: number;
}

export interface QueuePairFormat extends ContextFormat {
  /** Bytes of a context on chip: at least {@link contextBytes}. */
  readonly storedBytes: number;
  /** Offset of the primary path in a context on chip, in the layout of `addressPath`. */
  readonly pathOffset: number;
  /** Fills the configured fields of `pair`. The transitions that set the numbers of its connection start them. */
  load(
    view: DataView,
    at: number,
    pair: QueuePair,
    previousState: number,
    connections: ConnectionStates,
  ): void;
  /** Writes state, counters and the connection's numbers of `pair` into its context. */
  sync(view: DataView, at: number, pair: QueuePair, connections: ConnectionStates): void;
  /** Configured receive CQ: that of an XRC target's row is the CQ of its message's SRQ. */
  receiveCqnAt(view: DataView, at: number): Cqn;
  flowCounterAt(view: DataView, at: number): number;
}

export interface CompletionQueueFormat extends ContextFormat {
  load(view: DataView, at: number, queue: CompletionQueue): void;
  sync(view: DataView, at: number, queue: CompletionQueue): void;
}

export interface SharedQueueFormat extends ContextFormat {
  load(view: DataView, at: number): SharedQueueSetting;
  sync(view: DataView, at: number, progress: SharedQueueProgress): void;
}

export interface EventQueueFormat extends ContextFormat {
  load(view: DataView, at: number): EventQueueSetting;
  sync(view: DataView, at: number, progress: EventQueueProgress): void;
}

export interface ContextFormats {
  readonly queuePairs: QueuePairFormat;
  readonly completionQueues: CompletionQueueFormat;
  readonly sharedQueues: SharedQueueFormat;
  readonly eventQueues: EventQueueFormat;
}

/** Traits of the device's ports, on which the meaning of a QP's context depends. */
export interface PortTraits {
  /** Longest frame of an Ethernet port without FCS, in bytes; 0 on a port of InfiniBand. */
  readonly frameBytesMax: number;
  /** An Ethernet port carries more than frames. */
  readonly hasRoce: boolean;
  /** Ports that carry packets: QPs of others use port 1. Left out: 1. */
  readonly packetPortCount?: number;
}
