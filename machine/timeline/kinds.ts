/**
 * Kinds of records of the timeline, declared once: meaning, category and the meaning of their numbers. A kind is
 * identified by its index in the table.
 */
import { operationStages } from '../../hw/hca/index.ts';
import { switchDrops, switchWaits } from '../../hw/switch/index.ts';

/** Categories that a user can request. */
export const timelineCategories = [
  'blocks',
  'tlps',
  'packets',
  'dma',
  'doorbells',
  'caches',
  'checks',
  'levels',
  'operations',
  'interrupts',
  'cores',
  'registers',
  'switches',
] as const;
export type TimelineCategory = (typeof timelineCategories)[number];

export interface TimelineKind {
  readonly category: TimelineCategory;
  /** The shape of a record of the kind. */
  readonly shape: 'interval' | 'instant' | 'level';
  /** Its numbers, in order. */
  readonly values: readonly string[];
}

/** Kinds in the order of their numbers. */
export const timelineKinds = {
  blockBusy: { category: 'blocks', shape: 'interval', values: [] },
  /** `reason` is a name of the track. */
  blockStalled: { category: 'blocks', shape: 'interval', values: ['reason'] },
  /**
   * A TLP on the lanes of its sender; it takes effect at the other end one track latency after its last byte was sent.
   */
  tlp: {
    category: 'tlps',
    shape: 'interval',
    values: ['type', 'address', 'lengthBytes', 'tag', 'trafficClass', 'byteCount'],
  },
  updateFc: { category: 'tlps', shape: 'interval', values: ['flow', 'limit'] },
  /**
   * A packet on the cable, like a TLP on its link. `flags`: 1 retransmitted, 2 corrupted by a fault, 4 requests an ACK,
   * 8 never arrives.
   */
  packet: {
    category: 'packets',
    shape: 'interval',
    values: ['opcode', 'destinationQpn', 'psn', 'payloadBytes', 'flags', 'syndrome'],
  },
  flowControl: { category: 'packets', shape: 'interval', values: ['creditLimit'] },
  /** A frame that is not a RoCE packet: `flags` as for a packet, `protocol` a number of wire/frame-protocol.ts. */
  frame: { category: 'packets', shape: 'interval', values: ['frameBytes', 'flags', 'protocol'] },
  /** A DMA read from its request to its report. `status` 0 is success. */
  dmaRead: { category: 'dma', shape: 'interval', values: ['address', 'lengthBytes', 'status'] },
  /** A DMA write until its last TLP was handed to the link. */
  dmaWrite: { category: 'dma', shape: 'interval', values: ['address', 'lengthBytes'] },
  doorbell: { category: 'doorbells', shape: 'instant', values: ['qpn'] },
  /** A complete BlueFlame post. */
  blueFlame: { category: 'doorbells', shape: 'instant', values: ['qpn'] },
  cqArm: { category: 'doorbells', shape: 'instant', values: [] },
  eqDoorbell: { category: 'doorbells', shape: 'instant', values: [] },
  /** A look-up that hit. `user` is a name of the track; `entry` the object's number or the tag. */
  cacheHit: { category: 'caches', shape: 'instant', values: ['user', 'entry'] },
  /** A look-up that waits for a read; repeating it does not count again. */
  cacheMiss: { category: 'caches', shape: 'instant', values: ['user', 'entry'] },
  /**
   * A translation by key that ended an access: `answer` as below, the found value, and the limits that it was compared
   * with (both ends of a region if there are two; -1 if there are none).
   */
  accessRefused: {
    category: 'checks',
    shape: 'instant',
    values: ['user', 'key', 'answer', 'address', 'lengthBytes', 'found', 'heldTo', 'heldToEnd'],
  },
  /** A request of the QP `requesterQpn` that put the responder's QP into the error state: `check` by the table below. */
  requestRefused: {
    category: 'checks',
    shape: 'instant',
    values: ['qpn', 'check', 'opcode', 'psn', 'found', 'heldTo', 'requesterQpn'],
  },
  /** A CQE with an error, `syndrome` as in abi/cqe.ts. */
  errorCompletion: {
    category: 'checks',
    shape: 'instant',
    values: ['qpn', 'wqeCounter', 'syndrome', 'isSend'],
  },
  /** Entries held from now on. */
  level: { category: 'levels', shape: 'level', values: ['entries'] },
  /** The request became visible to the device; `ordinal` counts from 0 on its host; -1 for a kernel frame. */
  posted: { category: 'operations', shape: 'instant', values: ['qpn', 'wqeCounter', 'opcode', 'ordinal'] },
  /**
   * Its time on the device, from posting to the departure of its CQE or, if unsignalled, to its acknowledgement.
   * `destination` is the host that it was sent to; -1 if its address is of none.
   */
  operation: {
    category: 'operations',
    shape: 'interval',
    values: [
      'qpn',
      'wqeCounter',
      'opcode',
      'payloadBytes',
      'isSilent',
      'firstPsn',
      'psnCount',
      'destinationQpn',
      'destination',
    ],
  },
  /** One of its stages, `stage` by the table below; the stages of an operation tile its time. */
  stage: { category: 'operations', shape: 'interval', values: ['stage', 'qpn', 'wqeCounter', 'opcode'] },
  /** It failed or was flushed: `syndrome` of the CQE. */
  failed: { category: 'operations', shape: 'instant', values: ['qpn', 'wqeCounter', 'opcode', 'syndrome'] },
  /** Software has polled the completion; `ordinal` is that of the post. */
  taken: { category: 'operations', shape: 'instant', values: ['qpn', 'wqeCounter', 'opcode', 'ordinal'] },
  /** `step` by the table below. */
  interrupt: { category: 'interrupts', shape: 'instant', values: ['step', 'vector'] },
  /** A handler in the interrupt context of a core. */
  interruptServed: { category: 'interrupts', shape: 'interval', values: ['vector', 'core'] },
  /** The use of a core's cycles: `cause` is a name of the track; `thread` numbers the threads of the host. */
  core: { category: 'cores', shape: 'interval', values: ['cause', 'thread'] },
  registerWrite: {
    category: 'registers',
    shape: 'instant',
    values: ['bar', 'offset', 'value', 'lengthBytes'],
  },
  registerRead: {
    category: 'registers',
    shape: 'instant',
    values: ['bar', 'offset', 'value', 'lengthBytes'],
  },
  /**
   * A step of a packet in a switch, `step` by the table below; the steps from its arrival until its last byte has left
   * tile that time. `passage` numbers the packets of the switch, copies for several outputs apart.
   */
  hop: {
    category: 'switches',
    shape: 'interval',
    values: ['step', 'passage', 'input', 'output', 'opcode', 'destinationQpn', 'psn', 'payloadBytes'],
  },
  /** The first packet of a queue waits: `cause` is a step by the table below. */
  queueWait: { category: 'switches', shape: 'interval', values: ['cause', 'output'] },
  /** The sender at a port of a switch is stopped, because its share of the buffer is full. */
  senderStopped: { category: 'switches', shape: 'interval', values: ['priority'] },
  /**
   * A switch dropped a packet, or its copy for an output: `drop` by the table below. `isLoss` is 0 for a frame that
   * need not go further, such as a flooded one.
   */
  switchDrop: {
    category: 'checks',
    shape: 'instant',
    values: ['drop', 'input', 'output', 'opcode', 'destinationQpn', 'psn', 'payloadBytes', 'isLoss'],
  },
  /** An answer of the responder is complete: its first byte can leave from then on, if the cable is free. */
  answerFormed: { category: 'packets', shape: 'instant', values: ['destinationQpn', 'psn'] },
} as const satisfies Readonly<Record<string, TimelineKind>>;

export type TimelineKindName = keyof typeof timelineKinds;
export const timelineKindNames = Object.keys(timelineKinds) as readonly TimelineKindName[];

/** The number of each kind. */
export const kindNumbers = Object.fromEntries(
  timelineKindNames.map((name, number) => [name, number]),
) as Readonly<Record<TimelineKindName, number>>;

/** Steps of an interrupt, by the number in a record: on the device up to `sent`, then on the host. */
export const interruptSteps = [
  'requested',
  'moderated',
  'masked',
  'coalesced',
  'dropped',
  'sent',
  'reachedHost',
  'delivered',
  'merged',
] as const;
export type InterruptStep = (typeof interruptSteps)[number];

export const interruptStepNumbers = Object.fromEntries(
  interruptSteps.map((name, number) => [name, number]),
) as Readonly<Record<InterruptStep, number>>;

/**
 * Checks of a request at its responder, by the number in a record; the first failure of `access` and `receive` left a
 * record of its own. `sharedQueue`: the SRQ that an XRC request names. `broken`: not an error of the request; a queue
 * of the responder cannot continue.
 */
export const requestChecks = [
  'sequenceOrLength',
  'readResources',
  'qpRight',
  'atomicAlignment',
  'access',
  'receive',
  'sharedQueue',
  'broken',
] as const;
export type RequestCheck = (typeof requestChecks)[number];

export const requestCheckNumbers = Object.fromEntries(
  requestChecks.map((name, number) => [name, number]),
) as Readonly<Record<RequestCheck, number>>;

/** The track of refused translations that a QP requested. */
export const translationsOf = (qpn: number): string => `translations for QP 0x${qpn.toString(16)}`;

/** The track of requests that a device flushed before they started: their records have no number. */
export const flushedTrack = 'flushed';

/** Answers of a translation (hw/hca/memory/translation.ts). */
export const answerBadKey = 2;
export const answerBadPd = 3;
export const answerOutOfBounds = 4;
export const answerMissingRight = 5;
export const answerPageFault = 7;

/** Stages of an operation, by the number in a record. */
export const stageNames: readonly string[] = operationStages;

/**
 * Steps of a packet in a switch, by the number in a record: storing, if it awaits its last byte; forwarding; waits;
 * sending.
 */
export const hopSteps = ['forwarding', ...switchWaits, 'sending', 'storing'] as const;
export type HopStep = (typeof hopSteps)[number];

export const hopStepNumbers = Object.fromEntries(hopSteps.map((name, number) => [name, number])) as Readonly<
  Record<HopStep, number>
>;

export const dropNames = switchDrops;

/** Opcode in records of frames that are not packets of RoCE. */
export const noOpcode = -1;

/** Bits of a packet's `flags`. */
export const packetRetransmitted = 1;
export const packetCorrupted = 2;
export const packetAsksForAck = 4;
export const packetLost = 8;
