/**
 * Collects a device's evidence with listeners around methods of its blocks, like the timeline (timeline/around.ts).
 * Without listeners, a device does the same at the same speed. The journal reads no host memory, so it also works for a
 * stock guest's device.
 */
import {
  addressPath,
  CommandStatus,
  commandNameOf,
  mpt,
  mtuBytesOf,
  portInfo,
  QpState,
  QueueStatus,
  qpc,
  RoceMode,
  vendorSyndromeOf,
} from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import { type Hca, operationNames, portNames, type QueuePair } from '../../hw/hca/index.ts';
import { around, watchAccesses, watchCompletions } from '../timeline/index.ts';
import { gidText, macOfNumber, macText } from './address-text.ts';
import {
  type AccessEvidence,
  type CommandEvidence,
  type CqEvidence,
  type DeviceEvidence,
  type ErrorEvidence,
  limits,
  type PathEvidence,
  type PortEvidence,
  type QpStateName,
  type RegionEvidence,
  type RequestEvidence,
  type StateChange,
} from './evidence.ts';
import { Kept } from './kept.ts';
import { services, stateNames } from './names.ts';
import { PacketJournal } from './packet-journal.ts';
import { StreamJournal } from './stream-journal.ts';
import type { LiveQp, LiveQps, TransportJournal } from './transport-journal.ts';

const path = addressPath.fields;
const context = qpc.fields;
const region = mpt.fields;

const statesMax = 16;
const underWayMax = 16;
const portChangesMax = 16;
const NONE = -1;

/** Indexed by the PARKED_ numbers of hw/hca/send-queue/send-scheduler.ts. */
const parkedNames = [
  '',
  'readLimit',
  'fence',
  'credits',
  'rnr',
  'window',
  'draining',
  'error',
  'records',
  'pageFault',
  'order',
  'keys',
  'context',
];

const hex = (value: number): string => `0x${(value >>> 0).toString(16)}`;

/** The journal of the device's transport. */
const transportJournalOf = (hca: Hca, qps: LiveQps): TransportJournal => {
  const { ibta, iwarp } = hca;
  return ibta === undefined ? new StreamJournal(iwarp!, qps) : new PacketJournal(hca, ibta, qps);
};

export class DeviceJournal {
  readonly node: number;
  readonly #hca: Hca;
  readonly #transport: TransportJournal;
  readonly #qps = new Kept<LiveQp>(limits.objects);
  readonly #liveQps = new Map<number, LiveQp>();
  readonly #cqs = new Kept<CqEvidence & { generation: number }>(limits.objects);
  readonly #liveCqs = new Map<number, CqEvidence>();
  readonly #regions = new Kept<RegionEvidence>(limits.objects);
  readonly #liveRegions = new Map<number, RegionEvidence>();
  readonly #accesses = new Kept<AccessEvidence>(limits.records);
  readonly #errors = new Kept<ErrorEvidence>(limits.records);
  readonly #commands = new Kept<CommandEvidence>(limits.records);
  readonly #downPs: number[] = [];
  readonly #upPs: number[] = [];
  /** The port's addresses when they were last in use: a driver that is removed deletes them. */
  #addresses: Omit<PortEvidence, 'isActive' | 'downPs' | 'upPs'> | undefined;
  #isBySoftware = false;
  /** Completions, served requests and state changes: the measure of progress. */
  progressCount = 0;

  constructor(node: number, hca: Hca) {
    this.node = node;
    this.#hca = hca;
    this.#watchQueuePairs();
    this.#watchQueues();
    this.#watchRequests();
    this.#watchCommands();
    this.#watchPort();
    watchAccesses(hca, ({ user, lengthBytes, ...access }) =>
      this.#accesses.add({ ...access, user: portNames[user]!, bytes: lengthBytes, atPs: this.#nowPs }),
    );
    this.#transport = transportJournalOf(hca, this.#livingQps());
    watchCompletions(hca, ({ qpn, cq, wqeCounter, syndrome, isSend }) => {
      this.#completed(qpn, cq, syndrome, isSend);
      if (syndrome === 0) return;
      const refusal = this.#parts.qps.rows[this.#parts.qps.slotOf(qpn)]?.lastRefusal ?? 0;
      const vendor = vendorSyndromeOf(syndrome, isSend, refusal);
      const cqn = cq === NONE ? NONE : this.#parts.cqs.numberOf[cq]!;
      this.#errors.add({ qpn, wqeCounter, syndrome, isSend, cqn, atPs: this.#nowPs, vendor });
    });
  }

  /** The evidence so far, as plain data. */
  collect(): DeviceEvidence {
    const parts = this.#parts;
    for (const [slot, qp] of this.#liveQps) this.#refresh(qp, parts.qps.rows[slot]!);
    for (const [slot, cq] of this.#liveCqs) this.#refreshCq(cq, slot);
    const { pageFaults } = parts;
    const clockMHz = this.#hca.domain.clock.frequencyMHz;
    const sum = (counts: Float64Array): number => counts.reduce((total, count) => total + count, 0);
    const { wirePort, ethernetPort } = this.#hca;
    const lists = [this.#qps, this.#cqs, this.#regions, this.#accesses, this.#errors];
    const { omitted, ...ofTransport } = this.#transport.collect();
    return {
      node: this.node,
      atPs: this.#nowPs,
      isEthernet: ethernetPort !== undefined,
      lossRecovery: this.#parts.config.lossRecovery,
      port: this.#portNow(),
      qps: this.#qps.list.map((qp) => ({
        ...qp,
        states: [...qp.states],
        timeoutWaits: { ...qp.timeoutWaits },
      })),
      cqs: this.#cqs.list.map(({ generation: _, ...cq }) => cq),
      regions: this.#regions.list.map((one) => ({ ...one })),
      ...ofTransport,
      accesses: [...this.#accesses.list],
      errors: [...this.#errors.list],
      commands: [...this.#commands.list],
      pageRequests: sum(pageFaults.requestCount),
      pageRequestsRefused: sum(pageFaults.refusedCount),
      pageWaitPs: (sum(pageFaults.waitCycles) * 1e6) / clockMHz,
      corruptedPackets: ethernetPort === undefined ? wirePort.received.corrupted.packetTotal : 0,
      unsentPackets:
        ethernetPort === undefined ? wirePort.discardedCount : ethernetPort.transmitted.discardedFrames,
      omitted: lists.reduce((total, list) => total + list.omitted, omitted),
    };
  }

  #livingQps(): LiveQps {
    const nowPs = (): number => this.#nowPs;
    return {
      get nowPs() {
        return nowPs();
      },
      ofSlot: (slot) => this.#liveQps.get(slot),
      ofQpn: (qpn) => this.#ofQpn(qpn),
      progressed: () => void this.progressCount++,
    };
  }

  get #parts(): Parts {
    return this.#hca.dataPath.parts;
  }

  get #nowPs(): number {
    return Number(this.#hca.lp.instantPs);
  }

  // Queue pairs.

  #watchQueuePairs(): void {
    const { qps } = this.#parts;
    const { blocks } = this.#hca.dataPath;
    around(qps, 'create', (create) => (slot) => {
      const qp = newQp(this.#nowPs);
      this.#liveQps.set(slot, qp);
      create(slot);
      this.#qps.add(qp);
    });
    around(qps, 'load', (load) => (slot, previousState) => {
      load(slot, previousState);
      const qp = this.#liveQps.get(slot);
      if (qp !== undefined) this.#configured(qp, slot);
    });
    around(blocks.objects, 'qpDestroyed', (qpDestroyed) => (slot) => {
      this.#endQp(slot);
      qpDestroyed(slot);
    });
    around(qps, 'free', (free) => (slot) => {
      this.#endQp(slot);
      free(slot);
    });
    around(blocks.objects, 'qpToError', (qpToError) => (slot) => {
      this.#isBySoftware = true;
      qpToError(slot);
      this.#isBySoftware = false;
    });
    around(blocks.errors, 'fail', (fail) => (slot, cycle) => {
      const isFirst = this.#parts.qps.rows[slot]!.state !== QpState.ERR;
      fail(slot, cycle);
      if (isFirst) this.#entered(slot, 'ERR', this.#isBySoftware ? 'software' : 'device');
    });
    around(blocks.errors, 'sendFailed', (sendFailed) => (slot, cycle) => {
      sendFailed(slot, cycle);
      if (this.#parts.qps.rows[slot]!.state === QpState.SQER) this.#entered(slot, 'SQE', 'device');
    });
  }

  #endQp(slot: number): void {
    const qp = this.#liveQps.get(slot);
    if (qp === undefined) return;
    this.#refresh(qp, this.#parts.qps.rows[slot]!);
    qp.destroyedPs = this.#nowPs;
    qp.abandoned = qp.underWay.length;
    qp.underWay = [];
    this.#liveQps.delete(slot);
  }

  #entered(slot: number, state: QpStateName, by: StateChange['by']): void {
    const qp = this.#liveQps.get(slot);
    if (qp === undefined || qp.states.at(-1)?.state === state) return;
    if (qp.states.length === statesMax) qp.states.shift();
    qp.states.push({ state, by, atPs: this.#nowPs });
    qp.state = state;
    this.progressCount++;
  }

  /** Runs after a command has configured the QP. */
  #configured(qp: LiveQp, slot: number): void {
    const { qps, addresses } = this.#parts;
    const pair = qps.rows[slot]!;
    const address = addresses[pair.portIndex]!;
    const { view } = qps;
    const at = qps.offsetOf(slot);
    const from = qps.pathOf(slot);
    qp.qpn = qps.numberOf[slot]!;
    qp.service = services[pair.serviceType] ?? 'other';
    qp.pd = pair.pd;
    qp.sendCqn = pair.sendCqn;
    qp.receiveCqn = pair.receiveCqn;
    qp.srqn = pair.srqn;
    qp.remoteQpn = pair.remoteQpn;
    qp.mtuBytes = pair.mtuBytes;
    qp.pkeyIndex = pair.pkeyIndex;
    qp.pkey = address.pkeys[pair.pkeyIndex] ?? 0;
    qp.queueKey = pair.queueKey >>> 0;
    qp.retryCount = pair.retryCountMax;
    qp.rnrRetryCount = pair.rnrRetryCountMax;
    qp.timeoutCode = pair.ackTimeoutCode;
    qp.timeoutPs = this.#timeoutPs(pair.ackTimeoutCode);
    qp.rnrTimerCode = pair.minRnrNakCode;
    qp.rights = pair.remoteRights;
    qp.requesterReadsMax = pair.readsOutstandingMax;
    qp.responderReadsMax = pair.readResourcesMax;
    qp.sendSlots = 2 ** pair.sqLogCount;
    qp.sendSlotBytes = pair.sqStrideBytes;
    const state = stateNames[pair.state] ?? 'unknown';
    this.#transport.configured(qp, slot, state);
    this.#entered(slot, state, 'software');
    const isEthernet = this.#hca.ethernetPort !== undefined;
    const hasGrh = path.grhPresent.get(view, from) === 1 || isEthernet;
    const vlanIndex = path.vlanIndex.get(view, from);
    const next: PathEvidence = {
      lid: path.remoteLid.get(view, from),
      ...(hasGrh
        ? {
            gid: gidText(qps.bytes, from + path.remoteGid.field.offset),
            sourceGidIndex: path.sourceGidIndex.get(view, from),
          }
        : {}),
      ...(isEthernet
        ? {
            mac: macText(qps.bytes, from + path.destinationMac.field.offset),
            roce: context.roceMode.get(view, at) === RoceMode.V2 ? 'v2' : 'v1',
            ...(path.forceVlan.get(view, from) === 1 && address.roce !== undefined
              ? { vlan: address.roce.vlans[vlanIndex]! }
              : {}),
          }
        : {}),
    };
    qp.path = next;
    if (address.isActive) this.#addresses = this.#addressesNow();
  }

  #timeoutPs(code: number): number {
    const { ackTimeoutUnitNs, ackTimeoutCodeMin } = this.#parts.config;
    return code === 0 ? 0 : ackTimeoutUnitNs * 1000 * 2 ** Math.max(code, ackTimeoutCodeMin);
  }

  /** Fields that change without a command. */
  #refresh(qp: LiveQp, pair: QueuePair): void {
    const { receives } = this.#hca.dataPath.blocks;
    qp.begun = pair.sqCounter;
    // A subnet manager may change the table after the QP was configured.
    qp.pkey = this.#parts.addresses[pair.portIndex]!.pkeys[pair.pkeyIndex] ?? 0;
    qp.parkedFor = parkedNames[pair.parkedFor] ?? 'unknown';
    qp.underWay = requestsOf(pair, this.#transport);
    const queue = pair.opcodeBase === 0xe0 ? NONE : receives.queueOf(pair.slot);
    if (queue < 0) return;
    qp.receivesPosted = receives.postedCounter(queue);
    qp.receivesTaken = receives.consumedCounter(queue);
  }

  #ofQpn(qpn: number): LiveQp | undefined {
    return this.#liveQps.get(this.#parts.qps.slotOf(qpn));
  }

  // Requests and answers.

  #watchRequests(): void {
    const parts = this.#parts;
    const { blocks } = this.#hca.dataPath;
    around(parts.operations, 'completed', (completed) => (request, cycle, isSilent) => {
      const qp = this.#liveQps.get(request.qp);
      if (qp !== undefined && isSilent) qp.silent++;
      completed(request, cycle, isSilent);
      this.progressCount++;
    });
    around(parts.pageFaults, 'raise', (raise) => (slot, wanted, cycle) => {
      const qp = this.#liveQps.get(slot);
      if (qp !== undefined && wanted.side === RESPONDER_SIDE) qp.pageRnrNaks++;
      return raise(slot, wanted, cycle);
    });
    around(blocks.scatter, 'take', (take) => (slot, arrivedCycle, cycle) => {
      const taken = take(slot, arrivedCycle, cycle);
      const qp = this.#liveQps.get(slot);
      if (taken === NONE_POSTED && qp !== undefined && parts.qps.rows[slot]!.opcodeBase === 0) qp.noReceive++;
      return taken;
    });
  }

  #completed(qpn: number, cqSlot: number, syndrome: number, isSend: boolean): void {
    const qp = this.#ofQpn(qpn);
    this.progressCount++;
    const cq = this.#liveCqs.get(cqSlot);
    if (cq !== undefined) {
      cq.written++;
      cq.sinceEvent++;
      cq.lastWrittenPs = this.#nowPs;
    }
    if (qp === undefined) return;
    if (isSend) {
      if (syndrome === 0) qp.signalled++;
      else qp.failed++;
      return;
    }
    if (syndrome !== 0) return;
    qp.received++;
    qp.lastReceivedPs = this.#nowPs;
  }

  // Completion queues.

  #watchQueues(): void {
    const { cqs } = this.#parts;
    const { blocks } = this.#hca.dataPath;
    const { notifier } = blocks.completions;
    around(cqs, 'create', (create) => (slot) => {
      create(slot);
      const cq = { ...newCq(cqs.numberOf[slot]!, this.#nowPs), generation: 0 };
      this.#liveCqs.set(slot, cq);
      this.#cqs.add(cq);
    });
    around(cqs, 'free', (free) => (slot) => {
      const cq = this.#liveCqs.get(slot);
      if (cq !== undefined) {
        this.#refreshCq(cq, slot);
        cq.destroyedPs = this.#nowPs;
        this.#liveCqs.delete(slot);
      }
      free(slot);
    });
    around(notifier, 'arm', (arm) => (slot, command, consumer, cycle) => {
      const cq = this.#liveCqs.get(slot);
      if (cq !== undefined) {
        cq.arms++;
        cq.lastArmPs = this.#nowPs;
      }
      arm(slot, command, consumer, cycle);
    });
    const { events } = this.#hca.control;
    around(events, 'postCompletion', (postCompletion) => (eqn, cqn, cycle, joinedCount) => {
      const cq = this.#liveCqs.get(cqs.slotOf(cqn));
      if (cq !== undefined) {
        cq.events++;
        cq.lastEventPs = this.#nowPs;
        cq.sinceEvent = 0;
      }
      postCompletion(eqn, cqn, cycle, joinedCount);
    });
    around(blocks.errors, 'cqFailed', (cqFailed) => (slot, syndrome, cycle) => {
      const cq = this.#liveCqs.get(slot);
      if (cq !== undefined) {
        this.#refreshCq(cq, slot);
        cq.failedPs = this.#nowPs;
      }
      cqFailed(slot, syndrome, cycle);
    });
  }

  /** Keeps the state of a CQ at its failure. */
  #refreshCq(cq: CqEvidence, slot: number): void {
    if (cq.failedPs !== undefined) return;
    const queue = this.#parts.cqs.rows[slot]!;
    cq.entries = 2 ** queue.logEntries;
    cq.producer = queue.producer;
    cq.consumer = queue.consumer;
    cq.armed = (['not', 'solicited', 'next'] as const)[queue.armState] ?? 'not';
    cq.status =
      queue.status === QueueStatus.OK ? 'ok' : queue.status === QueueStatus.OVERFLOW ? 'overrun' : 'failed';
  }

  // Commands and regions.

  #watchCommands(): void {
    around(this.#hca.control.blocks.commandSet.commands, 'start', (start) => (request) => {
      const reject = (thrown: unknown): never => {
        const status = statusOf(thrown);
        if (status !== undefined)
          this.#commands.add({
            command: commandNameOf(request.opcode) ?? hex(request.opcode),
            status,
            inputModifier: request.inputModifier,
            atPs: this.#nowPs,
          });
        throw thrown;
      };
      try {
        const { steps, cycles } = start(request);
        const name = commandNameOf(request.opcode);
        const ended = (box: Uint8Array): void => {
          if (name === 'SW2HW_MPT') this.#registered(request.inputModifier, box);
          else if (name === 'HW2SW_MPT') this.#deregistered(request.inputModifier);
        };
        return { steps: watched(steps, ended, reject), cycles };
      } catch (thrown) {
        return reject(thrown);
      }
    });
  }

  #registered(index: number, box: Uint8Array): void {
    if (box.length < mpt.sizeBytes) return;
    const view = viewOf(box);
    const key = region.keyIndexForm.get(view, 0);
    const bits = [
      region.localReadEnabled,
      region.localWriteEnabled,
      region.remoteReadEnabled,
      region.remoteWriteEnabled,
      region.atomicEnabled,
    ];
    const made: RegionEvidence = {
      key: ((key << 8) | (key >>> 24)) >>> 0,
      pd: region.pd.get(view, 0),
      start: region.startAddress.getNumber(view, 0),
      lengthBytes: region.lengthBytes.getNumber(view, 0),
      rights: bits.reduce((rights, field, bit) => rights | (field.get(view, 0) << bit), 0),
      isOnDemand: region.isOnDemand.get(view, 0) === 1,
      isRegion: region.isRegion.get(view, 0) === 1,
      createdPs: this.#nowPs,
    };
    this.#liveRegions.set(index, made);
    this.#regions.add(made);
  }

  #deregistered(index: number): void {
    const one = this.#liveRegions.get(index);
    if (one !== undefined) one.destroyedPs = this.#nowPs;
    this.#liveRegions.delete(index);
  }

  // The port.

  #watchPort(): void {
    around(this.#hca.dataPath.blocks.objects, 'portChanged', (portChanged) => (isUp) => {
      const list = isUp ? this.#upPs : this.#downPs;
      if (list.length < portChangesMax) list.push(this.#nowPs);
      if (!isUp) this.#addresses ??= this.#addressesNow();
      portChanged(isUp);
    });
  }

  get #firstAddress() {
    return this.#parts.addresses[0]!;
  }

  #portNow(): PortEvidence {
    const { isActive } = this.#firstAddress;
    const addresses = isActive ? this.#addressesNow() : (this.#addresses ?? this.#addressesNow());
    return { isActive, ...addresses, downPs: [...this.#downPs], upPs: [...this.#upPs] };
  }

  #addressesNow(): Omit<PortEvidence, 'isActive' | 'downPs' | 'upPs'> {
    const port = this.#hca.control.ports[0]!;
    const address = this.#firstAddress;
    const gids = Array.from({ length: address.gids.length / 16 }, (_, index) =>
      address.gids.subarray(16 * index, 16 * index + 16),
    );
    const isEthernet = this.#hca.ethernetPort !== undefined;
    return {
      lid: address.lid,
      gids: gids.flatMap((gid) => (gid.every((byte) => byte === 0) ? [] : [gidText(gid)])),
      macs: Array.from(address.roce?.macs ?? [])
        .filter((mac) => mac > 0)
        .map(macOfNumber),
      pkeys: Array.from(address.pkeys).filter((pkey) => pkey !== 0),
      mtuBytes: isEthernet
        ? port.ethernet!.mtuBytes
        : mtuBytesOf(portInfo.fields.neighborMtu.get(port.view, 0)),
    };
  }
}

/** hw/hca/answers.ts and hw/hca/memory/page-faults.ts. */
const NONE_POSTED = 6;
const RESPONDER_SIDE = 1;

type Parts = Hca['dataPath']['parts'];

/** The oldest send requests of a QP that have begun and not completed. */
function requestsOf({ recordHead, recordCount }: QueuePair, transport: TransportJournal): RequestEvidence[] {
  const requests: RequestEvidence[] = [];
  let record = recordHead;
  for (let left = Math.min(recordCount, underWayMax); left > 0; left--) {
    const { wqeCounter, opcode, packetCount, isSignalled, messageBytes } = record;
    requests.push({
      wqeCounter,
      operation: operationNames[opcode] ?? hex(opcode),
      firstPsn: transport.firstPsnOf(record),
      psnCount: packetCount,
      isSignalled: isSignalled === 1,
      bytes: messageBytes,
    });
    record = record.next;
  }
  return requests;
}

function* watched<Step, Result>(
  steps: Generator<Step, Result, Uint8Array>,
  ended: (box: Uint8Array) => void,
  rejected: (thrown: unknown) => never,
): Generator<Step, Result, Uint8Array> {
  let box: Uint8Array = nothing;
  try {
    let input: Uint8Array = nothing;
    for (;;) {
      const next = steps.next(input);
      if (next.done === true) {
        ended(box);
        return next.value;
      }
      input = yield next.value;
      if (box.length === 0) box = input.slice();
    }
  } catch (thrown) {
    return rejected(thrown);
  } finally {
    steps.return?.(undefined as Result);
  }
}

const nothing: Uint8Array = new Uint8Array(0);

const statusNames = new Map<number, string>(
  Object.entries(CommandStatus).map(([name, code]) => [code, name]),
);

/** The status of a rejected command that is not an error. */
function statusOf(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || thrown instanceof Error) return undefined;
  const { status } = thrown as { readonly status?: unknown };
  return typeof status === 'number' ? (statusNames.get(status) ?? hex(status)) : undefined;
}

function newQp(atPs: number): LiveQp {
  return {
    qpn: NONE,
    service: 'other',
    pd: NONE,
    sendCqn: NONE,
    receiveCqn: NONE,
    srqn: NONE,
    createdPs: atPs,
    state: 'RESET',
    states: [],
    remoteQpn: NONE,
    path: { lid: 0 },
    mtuBytes: 0,
    pkeyIndex: 0,
    pkey: 0,
    queueKey: 0,
    sendPsn: NONE,
    receivePsn: NONE,
    retryCount: 0,
    rnrRetryCount: 0,
    timeoutCode: 0,
    timeoutPs: 0,
    rnrTimerCode: 0,
    rights: 0,
    requesterReadsMax: 0,
    responderReadsMax: 0,
    sendSlots: 0,
    sendSlotBytes: 0,
    begun: 0,
    signalled: 0,
    silent: 0,
    failed: 0,
    underWay: [],
    abandoned: 0,
    parkedFor: '',
    timeouts: 0,
    timeoutsWhileDown: 0,
    timeoutWaits: { leastPs: 0, mostPs: 0, totalPs: 0 },
    rnrNaksReceived: 0,
    rnrWaitPs: 0,
    lastRnrPs: NONE,
    sequenceNaksReceived: 0,
    lateAnswers: 0,
    missingResponses: 0,
    noReceive: 0,
    pageRnrNaks: 0,
    outOfSequence: 0,
    duplicates: 0,
    packetsV1: 0,
    packetsV2: 0,
    served: { send: 0, write: 0, writeImmediate: 0, read: 0, atomic: 0 },
    received: 0,
    lastReceivedPs: NONE,
    receivesPosted: 0,
    receivesTaken: 0,
  };
}

function newCq(cqn: number, atPs: number): CqEvidence {
  return {
    cqn,
    createdPs: atPs,
    entries: 0,
    status: 'ok',
    written: 0,
    producer: 0,
    consumer: 0,
    arms: 0,
    lastArmPs: NONE,
    armed: 'not',
    events: 0,
    lastEventPs: NONE,
    sinceEvent: 0,
    lastWrittenPs: NONE,
  };
}
